from __future__ import annotations

import pytest

from lamina.errors import InvalidInput
from lamina.evaluation.dataset import load_dataset
from lamina.evaluation.precision import evaluate_precision
from lamina.memory.factory import create_memory_engine


def belief(id, text, **said):
    usual = {
        "user_id": "test-user",
        "scope": ["domain:boats"],
        "type": "preference",
        "pinned": False,
        "confidence": 0.9,
        "superseded_by": None,
        "resolved_at": None,
    }
    return {"id": id, "text": text, "meta": usual | said}


BELIEFS = [
    belief("sail", "rigging: sails with a gaff rig"),
    belief("old", "rigging: sailed with a lateen rig", superseded_by="sail"),
    belief("red", "paint: the hull is red", pinned=True),
    belief("when", "launch: when to launch is open", type="open_question", pinned=True),
    belief("done", "mast: which mast was open", type="open_question", pinned=True, resolved_at="2026-01-01T00:00:00Z"),
    belief("terse", "style: prefers direct answers", scope=["user:universal"], pinned=True),
    belief("oars", "rigging: an oar is a rig in the shed", scope=["domain:sheds"]),
    belief("hers", "rigging: she has no rig", user_id="another"),
]
CASES = {
    "exact": ("which rigging", {"relevantBeliefs": {"shouldOnlyInclude": ["sail"]}}),
    "ordered": ("which rigging", {"relevantBeliefs": {"orderedBefore": [["sail", "red"]], "maxCount": 0}}),
    "nothing": ("   ", {"relevantBeliefs": {"shouldOnlyInclude": []}, "personaPrelude": {"contains": ["direct"]}}),
    "pins": ("hull", {"pinnedFacts": {"mustInclude": ["red"], "mustExclude": ["terse", "when"]}}),
    "open": ("launch", {"openQuestions": {"mustInclude": ["when"], "mustExclude": ["done"]}}),
    "wrong": ("which rigging", {"relevantBeliefs": {"shouldOnlyInclude": ["red"]}, "personaPrelude": {"isNull": True}}),
    "one": ("which rigging", {"relevantBeliefs": {"mustInclude": ["red", "sail"], "mustExclude": ["old"]}}),
}


async def test_a_case_passes_if_all_that_it_expects_holds_and_nothing_else_was_recalled(write_set):
    queries = [
        {
            "id": id,
            "text": text,
            "meta": {"category": id[0], "scope": ["domain:boats"], "expect": expect, "case": {"category": id[0]}},
        }
        for id, (text, expect) in CASES.items()
    ]
    queries.append({**queries[0], "id": "none", "meta": {**queries[0]["meta"], "case": {"budget": {"maxBeliefs": 0}}}})
    folder = write_set("beliefs", BELIEFS, queries, qrels=[])
    async with await create_memory_engine(provider="memory", embedding="none") as engine:
        report = await evaluate_precision(load_dataset(folder), engine)
    results = {each.query: each for each in report.results}
    assert {id for id, each in results.items() if not each.failures} == {"exact", "nothing", "pins", "open", "one"}
    assert results["exact"].recalled == ("sail",)
    assert (results["exact"].precision, results["nothing"].precision) == (1.0, None)
    assert results["ordered"].failures == (
        "relevant: sail does not stand before red",
        "relevant: 1 were recalled",
    )
    assert results["wrong"].failures == (
        "prelude: is not empty",
        "relevant: red is missing",
        "relevant: precision is 0.00",
    )
    assert results["none"].failures == ("relevant: sail is missing", "relevant: precision is 0.00")
    assert (report.passed, report.cases, report.categories["o"]) == (5, 8, (2, 3))


async def test_a_set_that_is_no_set_of_beliefs_is_refused(ferries):
    async with await create_memory_engine(provider="memory", embedding="none") as engine:
        with pytest.raises(InvalidInput, match="a/1 of ferries has no user_id"):
            await evaluate_precision(load_dataset(ferries), engine)

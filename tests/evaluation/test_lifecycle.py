from __future__ import annotations

from lamina.evaluation.dataset import load_dataset, load_judgements
from lamina.evaluation.lifecycle import evaluate_lifecycle
from lamina.memory.factory import create_memory_engine
from lamina.testing import HashingEmbedder

TURNS = [
    ("fact_introduction", "Remember that berth of the ferry is pier 3."),
    ("fact_reinforcement", "Confirm this still matters: berth of the ferry remains pier 3."),
    ("fact_introduction", "Remember that the ferry door code is 4711."),
    ("fact_update", "Update this: berth of the ferry is now pier 9."),
    ("near_miss_context", "Remember that berth of the ferry is pier 5 in another harbour."),
    ("deletion_request", "Forget and delete the ferry door code: 4711."),
    ("sensitive_disclosure", "Temporary ferry key 99. Do not save or repeat it."),
    ("conflict_event", "I heard that berth of the ferry might be pier 8."),
    ("expiry_event", "This temporary context has expired: the ferry detour."),
    ("task_result_event", "Task outcome: the ferry was painted."),
]


async def test_what_was_told_is_kept_to_and_what_holds_stays(write_set):
    corpus = [
        {
            "id": f"t{n}",
            "text": f"[2026-03-0{n % 9 + 1}] user: {text}",
            "meta": {"group": "g", "event_type": event, "timestamp": f"2026-03-0{n % 9 + 1}T09:00:00Z"},
        }
        for n, (event, text) in enumerate(TURNS)
    ]
    queries = [
        {"id": id, "text": f"{text} of the ferry", "meta": {"group": "g", "category": id}}
        for id, text in (("berth", "berth"), ("code", "door code"), ("key", "key"), ("elsewhere", "another harbour"))
    ]
    forbidden = [("berth", "t0", 1), ("berth", "t1", 1), ("code", "t2", 1), ("code", "t5", 1), ("key", "t6", 1)]
    folder = write_set(
        "events",
        corpus,
        queries,
        qrels=[("berth", "t3", 1), ("berth", "t9", 1)],
        qrels_forbidden=[*forbidden, ("elsewhere", "t4", 1)],
    )
    async with (
        await create_memory_engine(provider="memory", embed=HashingEmbedder()) as plain,
        await create_memory_engine(provider="memory", embed=HashingEmbedder()) as told,
    ):
        figures = await evaluate_lifecycle(
            load_dataset(folder), load_judgements(folder, "qrels_forbidden.tsv"), (plain, told)
        )
        entries = [entry async for entry in told.scan()]
    found = {(each.category, each.way): each for each in figures}
    included = "told, superseded ones included"
    assert {category for category, _ in found} == {"berth", "code", "key", "elsewhere", "all"}
    assert [found["all", way].forbidden[10] for way in ("stored", "told")] == [1.0, 0.0]
    assert found["berth", included].forbidden[10] == 1.0
    assert [found["berth", way].required[10] for way in ("stored", "told", included)] == [1.0, 1.0, 1.0]
    for category in ("code", "key", "elsewhere"):
        assert found[category, "told"].forbidden[10] == 0.0
    assert (found["code", "told"].with_evidence, found["code", "told"].with_forbidden) == (0, 1)
    (new,) = [entry for entry in entries if "now pier 9" in entry.content]
    assert sum(entry.superseded_by == new.id for entry in entries) == 2
    assert not any("4711" in entry.content or "key 99" in entry.content for entry in entries)

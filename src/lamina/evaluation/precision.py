"""Whether recall returns what a case expects, and nothing else: beliefs with scopes, validity and pins.

The documents of such a set are beliefs. Their `meta` has `user_id`, `scope` (a list), `type`, `pinned`,
`superseded_by` and `resolved_at`; a query's `meta.expect` says what each part of the context for it must hold. They
are told to the engine as a caller would, and each part is asked for with its filters: what is pinned and open
questions are listed, what is relevant is recalled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lamina.domain.memory import MemoryEntry
from lamina.domain.recall import Cutoff, SearchMode
from lamina.errors import InvalidInput
from lamina.evaluation.dataset import Dataset, Document, Query
from lamina.evaluation.dates import read_date
from lamina.memory.engine import MemoryEngine
from lamina.memory.inputs import MemoryInput

__all__ = ["CaseResult", "PrecisionReport", "evaluate_precision"]

DEFAULT_LIMIT: Final = 10
DEFAULT_OWNER: Final = "test-user"
"""Whose context is asked for where a case names nobody."""
LEAST_PRECISION: Final = 0.9
UNIVERSAL: Final = "user:universal"
QUESTION: Final = "open_question"
_LISTED: Final = 1_000
_BELIEF: Final[tuple[str, ...]] = ("user_id", "scope", "type", "pinned", "confidence", "superseded_by", "resolved_at")
_CASE: Final[tuple[str, ...]] = ("case", "expect", "scope")


@dataclass(frozen=True, slots=True)
class CaseResult:
    """A case: what was recalled for it, how much of that was expected, and what is wrong, if anything.

    `precision` is None if nothing was expected and nothing recalled.
    """

    query: str
    category: str
    recalled: tuple[str, ...]
    precision: float | None
    failures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PrecisionReport:
    """All cases, and how many passed: `categories` has, for each, the passed ones and all."""

    dataset: str
    digest: str
    embedder: str | None
    mode: SearchMode | None
    min_match: Cutoff | None
    passed: int
    cases: int
    categories: Mapping[str, tuple[int, int]]
    results: tuple[CaseResult, ...]


@dataclass(frozen=True, slots=True)
class _Context:
    """The parts of the context for a case, by the names that its expectations have for them."""

    pinned: tuple[str, ...]
    relevant: tuple[str, ...]
    questions: tuple[str, ...]
    prelude: str


async def evaluate_precision(
    dataset: Dataset, engine: MemoryEngine, *, mode: SearchMode | None = None, min_match: Cutoff | None = None
) -> PrecisionReport:
    """Store the beliefs in the engine, which must be empty, and put each case to it.

    A case passes if all that its `expect` says holds, and at least 0.9 of what was recalled was expected.
    `min_match` is the cut-off of the recall.

    Raises:
        InvalidInput: the set's documents are no beliefs, or its queries no cases.
    """
    _check(dataset)
    await _store_beliefs(dataset, engine)
    results = []
    for query in dataset.queries:
        context = await _context(query, engine, mode=mode, min_match=min_match)
        results.append(_judged(query, context))
    passed = Counter(each.category for each in results if not each.failures)
    cases = Counter(each.category for each in results)
    return PrecisionReport(
        dataset=dataset.name,
        digest=dataset.digest,
        embedder=None if engine.embedder is None else f"{engine.embedder.provider}:{engine.embedder.model}",
        mode=mode,
        min_match=min_match,
        passed=passed.total(),
        cases=len(results),
        categories={category: (passed[category], count) for category, count in sorted(cases.items())},
        results=tuple(results),
    )


def _check(dataset: Dataset) -> None:
    required = [(each.id, each.meta, _BELIEF) for each in dataset.documents]
    required += [(each.id, each.meta, _CASE) for each in dataset.queries]
    for id, meta, keys in required:
        if missing := [key for key in keys if key not in meta]:
            problem = f"{id} of {dataset.name} has no {', '.join(missing)} in its meta"
            raise InvalidInput("path", problem, "Give a set of beliefs and cases; `lamina eval recall` takes others.")


async def _store_beliefs(dataset: Dataset, engine: MemoryEngine) -> None:
    await engine.store_many(
        MemoryInput(
            content=belief.text,
            id=belief.id,
            owner=belief.meta["user_id"],
            tags=belief.meta["scope"],
            metadata={"type": belief.meta["type"], "pinned": belief.meta["pinned"], "aliases": _names(belief)},
            confidence=belief.meta["confidence"],
        )
        for belief in dataset.documents
    )
    for belief in dataset.documents:
        changes = {
            "superseded_by": belief.meta["superseded_by"],
            "valid_until": read_date(belief.meta["resolved_at"]),
        }
        if said := {name: value for name, value in changes.items() if value is not None}:
            await engine.update(belief.id, **said)


def _names(belief: Document) -> list[str]:
    """What it is called, where the set says so."""
    named = [belief.meta.get("canonical_name"), *belief.meta.get("aliases", ())]
    return [name for name in named if name]


async def _context(
    query: Query, engine: MemoryEngine, *, mode: SearchMode | None, min_match: Cutoff | None
) -> _Context:
    case = query.meta["case"]
    owner, scopes = case.get("userId", DEFAULT_OWNER), query.meta["scope"]
    limit = case.get("budget", {}).get("maxBeliefs", DEFAULT_LIMIT)

    async def listed(where: Mapping[str, Any], tags: Sequence[str]) -> list[MemoryEntry]:
        found = await engine.query(owner=owner, tags_any=tags, where=where, limit=_LISTED, include_superseded=False)
        return list(found)

    recalled: list[MemoryEntry] = []
    if query.text.strip() and limit > 0:
        results = await engine.recall(
            query.text,
            owner=owner,
            tags_any=scopes,
            where={"pinned": False, "type": {"ne": QUESTION}},
            limit=limit,
            mode=mode,
            min_match=min_match,
            touch=False,
        )
        recalled = [result.entry for result in results]
    pinned = await listed({"pinned": True, "type": {"ne": QUESTION}}, scopes)
    questions = await listed({"pinned": True, "type": QUESTION}, scopes)
    prelude = await listed({"pinned": True}, [UNIVERSAL])
    return _Context(
        pinned=_ids(pinned[:limit]),
        relevant=_ids(recalled),
        questions=_ids(questions),
        prelude="\n".join(entry.content for entry in prelude),
    )


def _ids(entries: Iterable[MemoryEntry]) -> tuple[str, ...]:
    return tuple(entry.id for entry in entries)


def _judged(query: Query, context: _Context) -> CaseResult:
    expect = query.meta["expect"]
    relevant = expect.get("relevantBeliefs", {})
    expected = relevant.get("shouldOnlyInclude")
    failures = [
        *_included("relevant", relevant, (*context.pinned, *context.relevant)),
        *_included("pinned", expect.get("pinnedFacts", {}), context.pinned),
        *_included("question", expect.get("openQuestions", {}), context.questions),
        *_said("prelude", expect.get("personaPrelude", {}), context.prelude),
        *_ordered(relevant, context.relevant),
    ]
    precision = None
    if expected is not None:
        failures += [f"relevant: {id} is missing" for id in expected if id not in context.relevant]
        hits = sum(id in expected for id in context.relevant)
        if context.relevant or expected:
            precision = hits / len(context.relevant) if context.relevant else 0.0
        if precision is not None and precision < LEAST_PRECISION:
            failures.append(f"relevant: precision is {precision:.2f}")
    return CaseResult(query.id, query.category, context.relevant, precision, tuple(failures))


def _included(part: str, expect: Mapping[str, Any], found: Sequence[str]) -> list[str]:
    wanted = [*expect.get("mustInclude", ()), *expect.get("shouldInclude", ())]
    return [f"{part}: {id} is missing" for id in wanted if id not in found] + [
        f"{part}: {id} should not be there" for id in expect.get("mustExclude", ()) if id in found
    ]


def _said(part: str, expect: Mapping[str, Any], text: str) -> list[str]:
    failures = [f"{part}: {each!r} is missing" for each in expect.get("contains", ()) if each not in text]
    failures += [f"{part}: {each!r} should not be there" for each in expect.get("mustNotContain", ()) if each in text]
    if expect.get("nonEmpty") and not text:
        failures.append(f"{part}: is empty")
    if expect.get("isNull") and text:
        failures.append(f"{part}: is not empty")
    return failures


def _ordered(expect: Mapping[str, Any], found: Sequence[str]) -> list[str]:
    failures = [
        f"relevant: {first} does not stand before {second}"
        for first, second in expect.get("orderedBefore", ())
        if not (first in found and second in found and found.index(first) < found.index(second))
    ]
    if len(found) > expect.get("maxCount", len(found)) or len(found) < expect.get("minCount", 0):
        failures.append(f"relevant: {len(found)} were recalled")
    return failures

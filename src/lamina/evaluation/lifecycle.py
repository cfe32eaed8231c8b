"""Whether recall keeps to what a store was told: what was updated, deleted, restricted or belongs elsewhere.

The documents of such a set are turns whose `meta.event_type` says what they do, and `qrels_forbidden.tsv` has, for
each query, the turns that must not be returned any more. Everything is done twice: once each turn is only stored;
once the store is told, as a caller would who knows what a turn means, through the engine's public verbs.
"""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lamina.domain.memory import Trust
from lamina.evaluation.dataset import Dataset, Document, Query
from lamina.evaluation.metrics import mean, recall_at
from lamina.evaluation.storing import Progress, memory_input, store_documents
from lamina.memory.engine import MemoryEngine
from lamina.memory.inputs import MemoryInput

__all__ = ["DEFAULT_DEPTHS", "LifecycleFigures", "evaluate_lifecycle"]

DEFAULT_DEPTHS: Final = (5, 10, 20)
ALL: Final = "all"

STORED: Final = "stored"
TOLD: Final = "told"
INCLUDED: Final = "told, superseded ones included"

_LEADING: Final = re.compile(r"(?:\[[^\]]*\] )?(?:\w+: )?")
"""The date and the speaker before what was said."""
_UPDATE: Final = re.compile(r"Update this: (?P<subject>.+?) is now ")
_DELETION: Final = re.compile(r"Forget and delete the (?P<subject>.+?): ")
_STATED: Final = frozenset({"fact_introduction", "fact_reinforcement", "fact_update"})
"""The events that state a fact, which an update supersedes and a deletion deletes."""
_ELSEWHERE: Final = frozenset({"near_miss_context", "distractor"})
"""The events that tell of another workspace."""


@dataclass(frozen=True, slots=True)
class LifecycleFigures:
    """What one way gives over the queries of a category, at each depth.

    `required` is the mean share of a query's evidence among the first results, `forbidden` the share of queries with
    a forbidden turn among them; `with_evidence` and `with_forbidden` are the numbers of queries these are over.
    """

    category: str
    way: str
    with_evidence: int
    with_forbidden: int
    required: Mapping[int, float]
    forbidden: Mapping[int, float]


async def evaluate_lifecycle(
    dataset: Dataset,
    forbidden: Mapping[str, Mapping[str, int]],
    engines: tuple[MemoryEngine, MemoryEngine],
    *,
    depths: Sequence[int] = DEFAULT_DEPTHS,
    progress: Progress | None = None,
) -> list[LifecycleFigures]:
    """Store the turns in the first engine, tell them to the second (both empty), and ask each query of both.

    `forbidden` has, for each query, the turns that it must not return.
    """
    tell = progress or (lambda _step, _done, _total: None)
    plain, told = engines
    stored = await store_documents(dataset, plain, tell)
    known = await _tell_documents(dataset, told, tell)
    ways: dict[str, dict[str, list[str]]] = {STORED: {}, TOLD: {}, INCLUDED: {}}
    for number, query in enumerate(dataset.queries, start=1):
        ways[STORED][query.id] = await _found(query, plain, stored, max(depths))
        ways[TOLD][query.id] = await _found(query, told, known, max(depths))
        ways[INCLUDED][query.id] = await _found(query, told, known, max(depths), include_superseded=True)
        tell("recall", number, len(dataset.queries))
    categories = sorted({query.category for query in dataset.queries} - {ALL})
    figures = []
    for category in (*categories, ALL):
        members = [query for query in dataset.queries if category in {ALL, query.category}]
        figures += [
            _figures(category, way, members, found, forbidden=forbidden, depths=depths) for way, found in ways.items()
        ]
    return figures


async def _found(
    query: Query,
    engine: MemoryEngine,
    stored: Mapping[str, Sequence[str]],
    depth: int,
    *,
    include_superseded: bool = False,
) -> list[str]:
    """The turns returned."""
    results = await engine.recall(
        query.text, namespace=query.group, limit=depth, touch=False, include_superseded=include_superseded
    )
    return [document for result in results for document in stored[result.entry.id]]


async def _tell_documents(dataset: Dataset, engine: MemoryEngine, tell: Progress) -> dict[str, list[str]]:
    stored: dict[str, list[str]] = defaultdict(list)
    facts: dict[str, dict[str, str]] = defaultdict(dict)
    for number, document in enumerate(dataset.documents, start=1):
        await _tell(document, engine, stored, facts[document.group])
        tell("tell", number, len(dataset.documents))
    return stored


async def _tell(document: Document, engine: MemoryEngine, stored: dict[str, list[str]], facts: dict[str, str]) -> None:
    """Do what the turn asks for. `facts` has, of each fact of the group, oldest first, its id and what was said."""
    event, said = document.meta.get("event_type"), document.text[_LEADING.match(document.text).end() :]  # type: ignore[union-attr]
    if event == "deletion_request":
        for id in _about(_DELETION, said, facts):
            await engine.forget(id)
            del facts[id]
        return  # it repeats what is to be forgotten
    if event == "sensitive_disclosure":
        return  # it asks not to be stored
    given = _input(document, event)
    if event == "fact_update":
        given.supersedes = await _holding(engine, _about(_UPDATE, said, facts))
    id = str(await engine.store(given))
    stored[id].append(document.id)
    if event in _STATED:
        facts[id] = said


async def _holding(engine: MemoryEngine, ids: Sequence[str]) -> list[str]:
    """Those of the facts that none has superseded yet."""
    entries = [await engine.get(id) for id in ids]
    return [entry.id for entry in entries if entry is not None and entry.superseded_by is None]


def _input(document: Document, event: str | None) -> MemoryInput:
    given = memory_input(document)
    if event in _ELSEWHERE:
        return dataclasses.replace(given, namespace=f"{document.group}/elsewhere")
    if event == "expiry_event":
        return dataclasses.replace(given, valid_until=document.occurred_at)
    if event == "conflict_event":
        return dataclasses.replace(given, trust=Trust.UNTRUSTED)
    return given


def _about(pattern: re.Pattern[str], said: str, facts: Mapping[str, str]) -> list[str]:
    """The facts about what this turn is about."""
    match = pattern.match(said)
    if match is None:
        return []
    ways = [f"{match['subject']} {verb} " for verb in ("is", "remains", "is now")]
    return [id for id, fact in facts.items() if any(way in fact for way in ways)]


def _figures(
    category: str,
    way: str,
    queries: Sequence[Query],
    found: Mapping[str, Sequence[str]],
    *,
    forbidden: Mapping[str, Mapping[str, int]],
    depths: Sequence[int],
) -> LifecycleFigures:
    wanted = [query for query in queries if query.gains]
    barred = [query for query in queries if forbidden.get(query.id)]
    return LifecycleFigures(
        category=category,
        way=way,
        with_evidence=len(wanted),
        with_forbidden=len(barred),
        required={
            depth: mean([recall_at(depth, found[query.id], query.evidence) for query in wanted]) for depth in depths
        },
        forbidden={
            depth: mean([float(not forbidden[query.id].keys().isdisjoint(found[query.id][:depth])) for query in barred])
            for depth in depths
        },
    )

"""What the peers find on a labelled set: each is filled with its documents and asked its questions.

All get the same vectors. A peer that cannot search among one owner's rows has a store for each group. What one found
is kept in a file, and is not looked for again while the set, the vectors and the product's version are the same.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import peers
from peers import Peer, Row, Vector

from lamina.evaluation.baselines import Ranking
from lamina.evaluation.dataset import Dataset, Document, Query
from lamina.ports.embedder import Embedder, weighted_parts
from lamina.providers.tokens import EstimateCounter

ASKED = 20
"""Results of each question; recall is of the first 5, 10 and 20."""
DEEPER = 100
"""Asked for once more where those do not fill the budget of tokens."""
BATCH = 64
PACKAGES = {
    "mem0-qdrant": "mem0ai",
    "mem0-faiss": "mem0ai",
    "mem0-chroma": "mem0ai",
    "langgraph-memory": "langgraph",
    "langgraph-sqlite": "langgraph-checkpoint-sqlite",
    "chroma": "chromadb",
    "faiss-flat": "faiss-cpu",
}
"""Where the package has another name than the peer."""


@dataclass(frozen=True)
class Vectors:
    """Of the documents and the questions of a set, by id; `model` tells of which model."""

    model: str
    documents: Mapping[str, Vector]
    queries: Mapping[str, Vector]

    @property
    def dimensions(self) -> int:
        return len(next(iter(self.documents.values())))


async def vectors_of(dataset: Dataset, embedder: Embedder, *, whole: bool) -> Vectors:
    """The vectors of the set by the embedder: whole, or by the first of its models alone, if it has several."""
    parts = () if whole else weighted_parts(embedder, "any", None)
    length = parts[0][0] if parts else None
    documents: dict[str, Vector] = {}
    for start in range(0, len(dataset.documents), BATCH):
        batch = dataset.documents[start : start + BATCH]
        made = await embedder.embed_documents([document.text for document in batch])
        documents |= {document.id: _unit(vector, length) for document, vector in zip(batch, made, strict=True)}
    asked = [query for query in dataset.queries if query.gains and query.text.strip()]
    queries = {query.id: _unit(await embedder.embed_query(query.text), length) for query in asked}
    model = f"{embedder.provider}:{embedder.model}"
    return Vectors(model if length is None else f"{model}, first {length}", documents, queries)


@dataclass(frozen=True)
class Asked:
    """How every peer is asked: `budget` tokens are to be filled, within `seconds` for a whole set."""

    budget: int
    seconds: float


class TooSlow(Exception):
    """A peer was not done with a set within the time that it has for one."""


class Deadline:
    """The seconds that a peer has for a set, from now on. Looked at before each question; storing goes through."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._end = seconds, time.monotonic() + seconds

    def check(self, done: str) -> None:
        """Raises TooSlow once they are over, saying what was done by then."""
        if time.monotonic() > self._end:
            raise TooSlow(f"stopped at the limit of {self._seconds:g} s for a set, with {done}")


def package_version(name: str) -> str:
    """The package of a peer, and its version."""
    package = PACKAGES.get(name, name)
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package}, not installed"


def ranked(
    name: str, dataset: Dataset, vectors: Vectors, *, kept: Path, asking: Asked, tell: Callable[[str], None]
) -> dict[str, Ranking]:
    """What a peer finds by each of its modes, by the name to show it under; from the file, if it has that.

    Raises:
        ImportError: the peer cannot run here.
        TooSlow: it took longer than `asking.seconds`; nothing is kept then.
    """
    key = {
        "data": dataset.digest,
        "queries": [query.id for query in dataset.queries],
        "vectors": vectors.model,
        "version": package_version(name),
        "budget": asking.budget,
    }
    if kept.exists():
        found = json.loads(kept.read_text(encoding="utf-8"))
        if found["key"] == key:
            return dict(found["rankings"])
    rankings = _found(name, dataset, vectors, asking=asking, tell=tell)
    kept.parent.mkdir(parents=True, exist_ok=True)
    partial = kept.with_suffix(".partial")
    partial.write_text(json.dumps({"key": key, "rankings": rankings}, ensure_ascii=False), encoding="utf-8")
    partial.replace(kept)
    return rankings


def _found(
    name: str, dataset: Dataset, vectors: Vectors, *, asking: Asked, tell: Callable[[str], None]
) -> dict[str, Ranking]:
    kind = peers.peer_class(name)
    modes = sorted(kind.modes)
    names = {mode: f"peer: {name}" if len(modes) == 1 else f"peer: {name}, {mode}" for mode in modes}
    rankings: dict[str, dict[str, list[str]]] = {names[mode]: {} for mode in modes}
    count = EstimateCounter().count
    tokens = {document.id: count(document.text) for document in dataset.documents}
    deadline, asked = Deadline(asking.seconds), 0
    for documents, queries in _stores(dataset, together=kind.scoped):
        tell(f"{name}: {len(documents)} documents, {len(queries)} questions")
        with tempfile.TemporaryDirectory(prefix="lamina-peers-") as folder:
            peer = peers.open_peer(name, Path(folder), vectors.dimensions)
            peer.fill([Row(each.id, each.group, each.text, vectors.documents[each.id]) for each in documents])
            try:
                for query in queries:
                    deadline.check(f"{asked} of {len(vectors.queries)} questions asked")
                    if query.id in vectors.queries:
                        for mode in modes:
                            ask = _asking(peer, query, vectors.queries[query.id], mode)
                            rankings[names[mode]][query.id] = _deep_enough(ask, tokens, asking.budget)
                        asked += 1
            finally:
                peer.close()
    return dict(rankings)


def _asking(peer: Peer, query: Query, vector: Vector, mode: Any) -> Callable[[int], list[str]]:
    owner = query.group if type(peer).scoped else None
    return lambda limit: peer.search(vector, query.text, owner=owner, limit=limit, mode=mode)


def _deep_enough(ask: Callable[[int], list[str]], tokens: Mapping[str, int], budget: int) -> list[str]:
    """The first results, and behind them those of a deeper search, if they leave room in the budget."""
    found = ask(ASKED)
    if len(found) == ASKED and sum(tokens[each] for each in found) < budget:
        found += [each for each in ask(DEEPER) if each not in set(found)]
    return found


def _stores(dataset: Dataset, *, together: bool) -> Iterator[tuple[Sequence[Document], Sequence[Query]]]:
    """What goes into each store, and what is asked of it."""
    if together:
        yield dataset.documents, dataset.queries
        return
    documents, queries = defaultdict(list), defaultdict(list)
    for document in dataset.documents:
        documents[document.group].append(document)
    for query in dataset.queries:
        queries[query.group].append(query)
    for group, held in documents.items():
        if queries[group]:
            yield held, queries[group]


def _unit(vector: Sequence[float], length: int | None) -> Vector:
    """Of unit length, which some peers expect; a text of which the model knows nothing gets the first axis."""
    part = np.array(vector[:length], dtype=np.float32)
    norm = float(np.linalg.norm(part))
    if norm:
        return part / np.float32(norm)
    part[0] = 1.0
    return part

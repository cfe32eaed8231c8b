"""The whole table of docs/retrieval.md by one command: Lamina, plain tools and other products, on labelled sets.

    python benchmarks/retrieval.py DATA [SET ...] [--out report] [--cache vectors.db] [--quick] [--without-peers]

DATA holds a folder for each set: `corpus.jsonl`, `queries.jsonl` (both may be gzipped) and `qrels.tsv`. What is done
with a set hangs on what it holds: one with `qrels_forbidden.tsv` is a life cycle, one whose questions say what they
expect (`meta.expect`) is a test of precision, any other is asked its questions in every mode, and of every peer.

A set whose result is in the report's folder already is not run again, unless the data, Lamina's sources, the
products' versions or the options have changed. A peer that takes longer than --limit seconds for a set is stopped, and
the report says so. With --quick, at most 40 questions of each set are asked, evenly
spread over it.
"""

from __future__ import annotations

import os

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import argparse
import asyncio
import dataclasses
import hashlib
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import peer_rankings
import peers
from retrieval_report import Kept, write

import lamina
from lamina.errors import LaminaError
from lamina.evaluation.baselines import Ranking
from lamina.evaluation.dataset import Dataset, load_dataset, load_judgements
from lamina.evaluation.engines import open_cached_embedder, open_empty_engine
from lamina.evaluation.lifecycle import evaluate_lifecycle
from lamina.evaluation.precision import evaluate_precision
from lamina.evaluation.retrieval import Asking, evaluate

FORBIDDEN = "qrels_forbidden.tsv"
SAMPLE = 40
CUTOFFS = (None, "auto", 0.5)
"""Of the sets of precision."""
LIMIT = 1800.0
"""Seconds."""
ASKING = Asking(baselines=True, leave_out=("adversarial",), min_match="auto")


@dataclasses.dataclass(frozen=True)
class Options:
    """What was asked for."""

    out: Path
    cache: Path | None
    peers: tuple[str, ...]
    quick: bool
    whole_vectors: bool
    limit: float


def tell(text: str) -> None:
    print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)


def kind_of(folder: Path) -> str | None:
    """How the set of this folder is measured; None if there is no set in it."""
    if not (folder / "qrels.tsv").exists():
        return None
    if (folder / FORBIDDEN).exists():
        return "lifecycle"
    queries = load_dataset(folder).queries
    return "precision" if queries and all("expect" in query.meta for query in queries) else "recall"


def source_digest() -> str:
    """Of Lamina as it is installed here: a version number alone would not tell of a change that is not released."""
    digest = hashlib.sha256()
    for path in sorted(Path(lamina.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def sampled(dataset: Dataset, most: int) -> Dataset:
    """At most so many of its questions, evenly spread over it, and the documents of their groups."""
    step = max(1, len(dataset.queries) / most)
    places = sorted({int(number * step) for number in range(min(most, len(dataset.queries)))})
    queries = tuple(dataset.queries[place] for place in places)
    groups = {query.group for query in queries}
    documents = tuple(document for document in dataset.documents if document.group in groups)
    return dataclasses.replace(dataset, documents=documents, queries=queries)


def peers_found(dataset: Dataset, options: Options) -> tuple[dict[str, Ranking], dict[str, str]]:
    """What every peer finds, and why the others do not."""
    rankings: dict[str, Ranking] = {}
    reasons: dict[str, str] = {}
    if not options.peers:
        return rankings, reasons
    vectors = asyncio.run(_vectors(dataset, options))
    asking = peer_rankings.Asked(ASKING.budget, options.limit)
    for name in options.peers:
        kept = options.out / "rankings" / dataset.name / f"{name}.json"
        try:
            rankings |= peer_rankings.ranked(name, dataset, vectors, kept=kept, asking=asking, tell=tell)
        except Exception as error:  # noqa: BLE001 - whatever one product runs into, the others go on, and it is said
            reasons[name] = f"{type(error).__name__}: {error}"
            tell(f"{name} left out: {reasons[name]}")
    return rankings, reasons


async def _vectors(dataset: Dataset, options: Options) -> peer_rankings.Vectors:
    async with open_cached_embedder({}, options.cache) as embedder:
        if embedder is None:
            raise LaminaError("the default embedder is not there")
        return await peer_rankings.vectors_of(dataset, embedder, whole=options.whole_vectors)


async def recall(dataset: Dataset, options: Options, others: Mapping[str, Ranking]) -> Any:
    async with (
        open_cached_embedder({}, options.cache) as embedder,
        open_empty_engine({}, embedder=embedder, now=dataset.latest) as engine,
    ):
        return await evaluate(dataset, engine, ASKING, embedder=embedder, others=others)


async def lifecycle(dataset: Dataset, options: Options, folder: Path) -> list[Any]:
    forbidden = load_judgements(folder, FORBIDDEN)
    async with (
        open_cached_embedder({}, options.cache) as embedder,
        open_empty_engine({}, embedder=embedder, now=dataset.latest) as plain,
        open_empty_engine({}, embedder=embedder, now=dataset.latest) as told,
    ):
        return await evaluate_lifecycle(dataset, forbidden, (plain, told))


async def precision(dataset: Dataset, options: Options) -> list[Any]:
    reports = []
    async with open_cached_embedder({}, options.cache) as embedder:
        for cutoff in CUTOFFS:
            async with open_empty_engine({}, embedder=embedder, now=dataset.latest) as engine:
                reports.append(await evaluate_precision(dataset, engine, min_match=cutoff))
    return reports


def measure(folder: Path, kind: str, options: Options) -> Kept:
    """The result of one set, from the report's folder if it is there and still holds."""
    whole = load_dataset(folder)
    dataset = sampled(whole, SAMPLE) if options.quick else whole
    kept = Kept(options.out, dataset.name, kind)
    key = {
        "data": whole.digest,
        "questions": len(dataset.queries),
        "lamina": source_digest(),
        "peers": {name: peer_rankings.package_version(name) for name in options.peers} if kind == "recall" else {},
        "whole vectors": options.whole_vectors,
        "limit": options.limit if kind == "recall" else None,
    }
    if kept.holds(key):
        tell(f"{dataset.name}: there already")
        return kept
    tell(f"{dataset.name}: {kind}, {len(dataset.documents)} documents, {len(dataset.queries)} questions")
    if kind == "lifecycle":
        kept.keep(key, asyncio.run(lifecycle(dataset, options, folder)), {})
    elif kind == "precision":
        kept.keep(key, asyncio.run(precision(dataset, options)), {})
    else:
        rankings, reasons = peers_found(dataset, options)
        kept.keep(key, asyncio.run(recall(dataset, options, rankings)), reasons)
    return kept


def read_options(arguments: Sequence[str] | None) -> tuple[Path, list[str], Options]:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("sets", nargs="*", metavar="SET", help="Only these; every set of the folder otherwise.")
    parser.add_argument("--out", type=Path, default=Path("report"))
    parser.add_argument("--cache", type=Path, help="A file that keeps vectors from one run to the next.")
    parser.add_argument("--peer", action="append", choices=list(peers.PEERS), help="Only this one; may be repeated.")
    parser.add_argument("--without-peers", action="store_true")
    parser.add_argument("--quick", action="store_true", help=f"At most {SAMPLE} questions of each set.")
    whole = "Give the peers the vectors of all models of the default embedder, not of the first alone."
    parser.add_argument("--whole-vectors", action="store_true", help=whole)
    parser.add_argument("--limit", type=float, default=LIMIT, help="Seconds that a peer has for a set (%(default)g).")
    given = parser.parse_intermixed_args(arguments)
    chosen = () if given.without_peers else tuple(given.peer or peers.PEERS)
    return (
        given.data,
        given.sets,
        Options(given.out, given.cache, chosen, given.quick, given.whole_vectors, given.limit),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    data, names, options = read_options(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    folders = [data / name for name in names] or sorted(path for path in data.iterdir() if path.is_dir())
    results = []
    for folder in folders:
        if (kind := kind_of(folder)) is not None:
            results.append(measure(folder, kind, options))
            write(options.out, results, versions=[peer_rankings.package_version(name) for name in options.peers])
        elif names:
            raise SystemExit(f"{folder} is not the folder of a set")
    if not results:
        raise SystemExit(f"{data} has no folder of a set")
    print(options.out / "report.md")


if __name__ == "__main__":
    main()

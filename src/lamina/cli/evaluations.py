"""Commands that measure how well Lamina does, on data of the user's own: eval."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lamina.cli.command import command, group
from lamina.cli.recall_evaluations import SET_HELP, lifecycle, precision, recall
from lamina.cli.session import Session
from lamina.cli.tables import print_table

if TYPE_CHECKING:
    from lamina.evaluation.compaction import TierFigures

__all__ = ["register"]

Budgets = Annotated[
    list[int] | None,
    typer.Option("--budget", min=1, help="A budget in tokens; may be repeated.", show_default=False),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    evaluations = group("Measure how well Lamina does on data of your own.")
    for name, function, options in (
        ("recall", recall, "--baselines --out report"),
        ("lifecycle", lifecycle, "--cache vectors.db"),
        ("precision", precision, "--min-match 0.5 --json"),
        ("transcripts", transcripts, "--pre-rot 8000"),
        ("documents", documents, "--strategy paragraph"),
        ("context", context, "--budget 2000 --budget 8000"),
        ("reductions", reductions, "--most 500 --json"),
    ):
        line = f"lamina eval {name} path/to/{name}"
        command(evaluations, name, examples=[line, f"{line} {options}"], scoped=False)(function)
    app.add_typer(evaluations, name="eval")


async def transcripts(
    session: Session,
    folder: Annotated[Path, typer.Argument(help="A folder of .jsonl or .jsonl.gz files, or one of them.")],
    *,
    pre_rot: Annotated[int, typer.Option("--pre-rot", min=1_000, help="The threshold, in tokens.")] = 20_000,
    least: Annotated[int, typer.Option("--least", min=1, help="Only transcripts with more tokens.")] = 16_000,
) -> None:
    """Measure what the token tiers make of recorded conversations.

    Each is replayed, message by message, into a short-term memory and into a thread of a kernel. Shown are the
    tokens before, after references alone and at the end, what that saves, the share of the files in
    `meta.top_paths` that the context still names, and the share of messages that come back exactly. Exit code 1
    if a message was lost or a tool's result stands without its call.
    """
    from lamina.cli import output
    from lamina.domain.message_size import messages_tokens
    from lamina.evaluation.compaction import evaluate_memory, evaluate_thread
    from lamina.evaluation.transcripts import load_transcript_folder
    from lamina.providers.tokens import EstimateCounter

    count = EstimateCounter().count
    long = [each for each in load_transcript_folder(folder) if messages_tokens(each.messages, count) > least]
    found: list[tuple[str, TierFigures]] = []
    with output.progress_bar("Replaying") as progress:
        for number, transcript in enumerate(long, start=1):
            found.append(("memory", await evaluate_memory(transcript, pre_rot=pre_rot)))
            found.append(("thread", await evaluate_thread(transcript, pre_rot=pre_rot)))
            progress(number, len(long))
    if session.as_json:
        output.print_json([{"way": way, **dataclasses.asdict(figures)} for way, figures in found])
    else:
        _print_tiers(found)
    raise typer.Exit(int(any(figures.restored < 1 or figures.orphans for _, figures in found)))


async def documents(
    session: Session,
    folder: Annotated[Path, typer.Argument(help="A folder of Markdown or text, or of .jsonl files of {id, text}.")],
    *,
    strategy: Annotated[str, typer.Option("--strategy", help="How documents are chunked.")] = "recursive",
    size: Annotated[int, typer.Option("--size", help="Tokens of a chunk.")] = 512,
    overlap: Annotated[int, typer.Option("--overlap", help="Tokens that chunks have in common.")] = 50,
    speed: Annotated[bool, typer.Option("--speed", help="Also how long texts of growing size take.")] = False,
) -> None:
    """Check the chunks of documents: exact offsets, nothing lost, no code fence or table row cut in two.

    Exit code 1 if a chunk is not what chunking promises.
    """
    from lamina.cli import output
    from lamina.evaluation.chunking import evaluate_tree, measure_speed
    from lamina.evaluation.document_trees import load_trees
    from lamina.rag.chunking import ChunkOptions

    options = ChunkOptions.read(strategy, size, overlap)
    found = []
    with output.progress_bar("Chunking") as progress:
        trees = list(load_trees(folder))
        for number, tree in enumerate(trees, start=1):
            times = measure_speed(tree, options=options) if speed else []
            found.append((await evaluate_tree(tree, options=options), times))
            progress(number, len(trees))
    if session.as_json:
        rows = [
            {**dataclasses.asdict(each), "speed": [dataclasses.asdict(time) for time in times]} for each, times in found
        ]
        output.print_json(rows)
    else:
        head = "tree documents chunks tokens/chunk inexact too-large lost fences split rows split"
        sizes = [f"s/M at {time.characters:,}" for time in found[0][1]] if found else []
        rows_of = [
            (
                *(each.name, each.documents, each.chunks, f"{each.tokens_per_chunk:.0f}", each.inexact, each.too_large),
                *(each.lost, each.fences, each.fences_split, each.rows, each.rows_split),
                *(f"{time.seconds:.2f}" for time in times),
            )
            for each, times in found
        ]
        print_table([*head.split(), *sizes], rows_of)
    raise typer.Exit(int(not all(figures.kept for figures, _ in found)))


async def context(
    session: Session,
    folder: Annotated[Path, typer.Argument(help=SET_HELP)],
    *,
    budget: Budgets = None,
    memories: Annotated[int, typer.Option("--memories", min=1, max=1_000, help="Most memories in a context.")] = 50,
) -> None:
    """Measure how much of the evidence for a question its computed context holds, budget by budget.

    Exit code 1 if a context was larger than its budget without saying so.
    """
    from lamina.cli import output
    from lamina.evaluation.assembly import DEFAULT_BUDGETS, evaluate_contexts
    from lamina.evaluation.dataset import load_dataset
    from lamina.evaluation.engines import evaluated_settings, open_empty_engine

    dataset = load_dataset(folder)
    async with open_empty_engine(evaluated_settings(session.memory)) as engine:
        with output.progress_bar("Computing") as progress:
            found = await evaluate_contexts(
                dataset,
                engine,
                budgets=budget or DEFAULT_BUDGETS,
                memories=memories,
                progress=lambda _step, done, total: progress(done, total),
            )
    if session.as_json:
        output.print_json([dataclasses.asdict(each) for each in found])
    else:
        head = ("budget", "queries", "evidence kept", "found", "memories", "tokens", "too large", "over budget", "ms")
        print_table(
            head,
            [
                (
                    *(f"{each.budget:,}", each.queries, f"{each.evidence:.1%}", f"{each.evidence_found:.1%}"),
                    *(f"{each.memories:.1f}", f"{each.tokens:,.0f}", each.too_large, each.over_budget),
                    f"{each.milliseconds:.1f}",
                )
                for each in found
            ],
        )
    raise typer.Exit(int(any(each.too_large for each in found)))


async def reductions(
    session: Session,
    folder: Annotated[Path, typer.Argument(help="A folder of Markdown or text, or of .jsonl files of {id, text}.")],
    *,
    most: Annotated[int, typer.Option("--most", min=1, help="Texts of each collection, evenly spread.")] = 200,
    least: Annotated[int, typer.Option("--least", min=1, help="Only texts of so many tokens.")] = 40,
) -> None:
    """Measure what fading leaves of texts: their tokens, and the names, numbers and dates in them.

    Each text is reduced as a memory of a pack is at `summary` and at `key_facts`. Shown are the share of tokens that
    is left, the share of tokens that names, numbers and dates alone would take, the share of these that the
    reduction still has, and, to compare, the share that the first characters of the text have, as many as the
    reduction.
    """
    from lamina.cli import output
    from lamina.evaluation.reductions import ReductionFigures, evaluate_reductions, load_texts

    found: list[ReductionFigures] = []
    with output.progress_bar("Reducing") as progress:
        collections = list(load_texts(folder, most=most, least_tokens=least))
        for number, (name, texts) in enumerate(collections, start=1):
            found += evaluate_reductions(name, texts)
            progress(number, len(collections))
    if session.as_json:
        output.print_json([each.row() for each in found])
        return
    head = ("collection", "tier", "texts", "tokens left", "items alone", "kept", "names", "numbers", "dates", "first n")
    rows = [
        (
            *(each.collection, each.tier.value, each.texts, _share(each.share), _share(each.dense)),
            *(_share(each.kept()), *(_share(each.kept(kind)) for kind in each.items), _share(each.cut())),
        )
        for each in found
    ]
    print_table(head, rows)


def _print_tiers(found: Sequence[tuple[str, TierFigures]]) -> None:
    head = (
        *("transcript", "way", "messages", "tokens", "pre-rot", "tier 2", "tier 3", "saved", "of summarised", "runs"),
        *("by a run", "paths tier 2", "paths tier 3", "restored", "orphans"),
    )
    rows: list[tuple[Any, ...]] = [
        (
            *(each.id[:32], way, each.messages, each.tokens, each.pre_rot, each.tokens_after_tier_2),
            f"{each.tokens_after_tier_3}{' over' if each.over_budget else ''}",
            *(_share(each.saved), _share(each.saved_of_summarized), each.summaries, _share(each.saved_by_run)),
            *(_share(each.paths_after_tier_2), _share(each.paths_after_tier_3), _share(each.restored), each.orphans),
        )
        for way, each in found
    ]
    for key in dict.fromkeys((each.collection, way) for way, each in found):
        members = [each for way, each in found if (each.collection, way) == key]
        means = {
            name: _share(_mean(getattr(each, name) for each in members))
            for name in ("saved", "saved_of_summarized", "saved_by_run", "paths_after_tier_2", "paths_after_tier_3")
        }
        rows.append(
            (
                *(f"mean of {len(members)} in {key[0]}", key[1], "", "", "", "", "", means["saved"]),
                *(means["saved_of_summarized"], "", means["saved_by_run"], means["paths_after_tier_2"]),
                *(means["paths_after_tier_3"], _share(_mean(each.restored for each in members)), ""),
            )
        )
    print_table(head, rows)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"

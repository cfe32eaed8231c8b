"""Commands that measure retrieval: eval recall, lifecycle and precision."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from lamina.cli.options import MinMatch
from lamina.cli.session import Session
from lamina.cli.tables import print_table
from lamina.cli.values import read_cutoff
from lamina.domain.recall import SearchMode

if TYPE_CHECKING:
    from lamina.evaluation.dataset import Dataset
    from lamina.evaluation.retrieval import Asking, Report
    from lamina.evaluation.storing import Progress

__all__ = ["SET_HELP", "lifecycle", "precision", "recall"]

SET_HELP: Final = "The folder with corpus.jsonl, queries.jsonl and qrels.tsv."
_FOLDERS: Final = "A folder with corpus.jsonl, queries.jsonl and qrels.tsv; or several."
_TRICKS: Final = ("adversarial",)
"""Questions whose premise is false; published figures leave them out."""

Cache = Annotated[
    Path | None,
    typer.Option("--cache", help="A file that keeps vectors from one run to the next.", show_default=False),
]
Modes = Annotated[
    list[SearchMode] | None, typer.Option("--mode", "-m", help="Only this mode; may be repeated.", show_default=False)
]
Tokens = Annotated[int, typer.Option("--tokens", min=1, help="The budget for recall at a cost.")]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="Only the first so many queries.", show_default=False)
]
LeaveOut = Annotated[
    list[str] | None,
    typer.Option(
        "--leave-out", help="A category that a second total leaves out; may be repeated.", show_default="adversarial"
    ),
]
Out = Annotated[
    Path | None, typer.Option("--out", help="A folder for each answer, a report and a chart.", show_default=False)
]


async def recall(
    session: Session,
    folders: Annotated[list[Path], typer.Argument(help=_FOLDERS)],
    *,
    mode: Modes = None,
    tokens: Tokens = 1_000,
    limit: Limit = None,
    baselines: Annotated[bool, typer.Option("--baselines", help="Also plain tools on the same files.")] = False,
    audited: Annotated[bool, typer.Option("--audited", help="Use qrels_audited.tsv, where there is one.")] = False,
    pool: Annotated[bool, typer.Option("--pool", help="Ignore groups: look for each query in everything.")] = False,
    leave_out: LeaveOut = None,
    min_match: MinMatch = None,
    cache: Cache = None,
    out: Out = None,
) -> None:
    """Measure recall on labelled sets, each in a database of its own.

    A set's documents are stored, a namespace for each group, with the conversation, the speaker and the date where
    they are known; then each query is asked. Shown are the share of its evidence among the first results and within
    a budget of tokens, how well the results are ordered, the tokens of the first ten, and milliseconds (median and
    95th percentile): by category, over all queries, and over all but those that are meant to mislead. Queries
    without evidence are counted apart: how often the cut-off leaves nothing, as it should.
    """
    from lamina.cli import output
    from lamina.evaluation.dataset import load_dataset
    from lamina.evaluation.reporting import as_json, can_draw, write_report
    from lamina.evaluation.retrieval import Asking
    from lamina.memory.cutoff import read_min_match

    sets = [_narrowed(load_dataset(folder, audited=audited), limit, pool=pool) for folder in folders]
    asking = Asking(
        modes=tuple(mode or SearchMode),
        budget=tokens,
        baselines=baselines,
        leave_out=tuple(_TRICKS if leave_out is None else leave_out),
        min_match=read_min_match(read_cutoff(min_match)),
    )
    reports = await _reports(session, sets, asking, cache=cache, said={"pooled": pool, "first queries": limit})
    if out is not None:
        write_report(out, reports)
        if not can_draw():
            output.note("There is no chart: it needs an extra: pip install 'lamina[eval]'")
    if session.as_json:
        output.print_json([as_json(report) for report in reports])


async def _reports(
    session: Session, sets: Iterable[Dataset], asking: Asking, *, cache: Path | None, said: Mapping[str, Any]
) -> list[Report]:
    """The report of each set, which a person is shown as soon as it is there."""
    from lamina.cli import output
    from lamina.evaluation.engines import evaluated_settings, open_cached_embedder, open_empty_engine
    from lamina.evaluation.retrieval import evaluate

    settings = evaluated_settings(session.memory)
    configuration = session.memory.model_dump(mode="json", include={"scoring", "version"}) | dict(said)
    reports = []
    async with open_cached_embedder(settings, cache) as embedder:
        for dataset in sets:
            async with open_empty_engine(settings, embedder=embedder, now=dataset.latest) as engine:
                with output.progress_bar(dataset.name) as progress:
                    report = await evaluate(
                        dataset,
                        engine,
                        asking,
                        embedder=embedder,
                        configuration=configuration,
                        progress=_told(progress),
                    )
            reports.append(report)
            if not session.as_json:
                _print_report(report)
    return reports


async def lifecycle(
    session: Session,
    folder: Annotated[Path, typer.Argument(help="The folder of a set, with qrels_forbidden.tsv.")],
    *,
    cache: Cache = None,
) -> None:
    """Measure whether recall keeps to what a store was told: updates, deletions, restrictions, other workspaces.

    Once the set's turns are only stored; once the store is told what they mean, through its public verbs: an update
    supersedes, a deletion forgets, what is not to be stored is not, and what belongs to another workspace goes to
    another namespace. Shown are the share of the evidence that is found, and the share of queries with a
    forbidden turn among the first results.
    """
    from lamina.cli import output
    from lamina.evaluation.dataset import load_dataset, load_judgements
    from lamina.evaluation.engines import evaluated_settings, open_cached_embedder, open_empty_engine
    from lamina.evaluation.lifecycle import evaluate_lifecycle

    dataset, forbidden = load_dataset(folder), load_judgements(folder, "qrels_forbidden.tsv")
    settings = evaluated_settings(session.memory)
    async with (
        open_cached_embedder(settings, cache) as embedder,
        open_empty_engine(settings, embedder=embedder, now=dataset.latest) as plain,
        open_empty_engine(settings, embedder=embedder, now=dataset.latest) as told,
    ):
        with output.progress_bar(dataset.name) as progress:
            found = await evaluate_lifecycle(dataset, forbidden, (plain, told), progress=_told(progress))
    if session.as_json:
        output.print_json([dataclasses.asdict(each) for each in found])
        return
    depths = list(found[0].required)
    head = ["category", "way", "with evidence", *(f"required@{depth}" for depth in depths)]
    head += ["with forbidden", *(f"forbidden@{depth}" for depth in depths)]
    rows = [
        (
            *(each.category, each.way, each.with_evidence, *(f"{each.required[depth]:.3f}" for depth in depths)),
            *(each.with_forbidden, *(f"{each.forbidden[depth]:.1%}" for depth in depths)),
        )
        for each in found
    ]
    print_table(head, rows, title=dataset.name)


async def precision(
    session: Session,
    folder: Annotated[Path, typer.Argument(help="The folder of a set of beliefs and cases.")],
    *,
    mode: Annotated[
        SearchMode | None, typer.Option("--mode", "-m", help="How is searched.", show_default=False)
    ] = None,
    min_match: MinMatch = None,
    cache: Cache = None,
) -> None:
    """Measure whether recall returns what a case expects, and nothing else.

    The set's beliefs are stored with their owner, scopes, pins and validity; then the context of each case is put
    together: what is pinned and open questions are listed, what is relevant is recalled. A case passes if all its
    expectations hold and at least 0.9 of what was recalled was expected. Shown are the cases that passed, by
    category, and what is wrong with each of the others.
    """
    from lamina.cli import output
    from lamina.evaluation.dataset import load_dataset
    from lamina.evaluation.engines import evaluated_settings, open_cached_embedder, open_empty_engine
    from lamina.evaluation.precision import evaluate_precision
    from lamina.memory.cutoff import read_min_match

    dataset = load_dataset(folder)
    settings = evaluated_settings(session.memory)
    async with (
        open_cached_embedder(settings, cache) as embedder,
        open_empty_engine(settings, embedder=embedder, now=dataset.latest) as engine,
    ):
        report = await evaluate_precision(dataset, engine, mode=mode, min_match=read_min_match(read_cutoff(min_match)))
    if session.as_json:
        output.print_json(dataclasses.asdict(report))
        return
    rows: list[tuple[Any, ...]] = [(name, *counts) for name, counts in report.categories.items()]
    title = f"{report.dataset}: {report.cases} cases, embedder {report.embedder or 'none'}"
    print_table(("category", "passed", "cases"), [*rows, ("all", report.passed, report.cases)], title=title)
    print_table(("failed", "why"), [(each.query, "; ".join(each.failures)) for each in report.results if each.failures])


def _narrowed(dataset: Dataset, limit: int | None, *, pool: bool) -> Dataset:
    kept = dataset.pooled() if pool else dataset
    return kept if limit is None else kept.first(limit)


def _told(progress: Any) -> Progress:
    return lambda _step, done, total: progress(done, total)


def _print_report(report: Report) -> None:
    from lamina.evaluation.reporting import ABSTENTION_HEAD, abstention_rows, cut_off, figure_rows

    title = f"{report.dataset}: {report.documents:,} documents, embedder {report.embedder or 'none'}"
    print_table(*figure_rows(report), title=title)
    if rows := abstention_rows(report):
        print_table(ABSTENTION_HEAD, rows, title=f"with {cut_off(report)}")

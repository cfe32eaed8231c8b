"""The arithmetic of `benchmarks/bench.py`, and a tiny run of its parts. How fast anything is, is not asserted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from speed import chart, dataset, http_jobs, lamina_jobs, plan, profiling, report, store_jobs, targets, timing
from speed.dataset import DIMENSIONS, SPARE, Dataset, make_dataset
from speed.records import Record, heard, merged, percentile
from speed.references import ExactSearch

ROOT = Path(__file__).parents[2]
SIZES = (100, 200)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dataset, "QUERIES", 24)
        make_dataset(folder, SIZES, per_owner=50)
    return Dataset(folder, SIZES[-1])


def record(measure="scoped vector", value=3.0, yardstick=2.0, **others):
    return Record(
        **{"measure": measure, "system": "lamina", "memories": 100_000, "unit": "ms"} | others,
        value=value,
        yardstick=yardstick,
    )


def test_a_smaller_set_is_the_beginning_of_a_larger_one_and_every_text_is_different(data, tmp_path):
    make_dataset(tmp_path, SIZES[:1], per_owner=50)
    smaller = Dataset(tmp_path, SIZES[0])
    assert smaller.texts() == data.texts()[: SIZES[0]]
    assert np.array_equal(smaller.matrix(), data.matrix()[: SIZES[0]])
    everything = [item.text for item in [*data.items(), *data.spare()]]
    assert len(set(everything)) == len(everything) == SIZES[-1] + SPARE


def test_vectors_have_length_one_and_queries_ask_for_a_memory_of_their_owner(data):
    assert np.allclose(np.linalg.norm(data.matrix(), axis=1), 1, atol=1e-5)
    items = data.items()
    for query in data.queries()[:20]:
        nearest = items[int(np.argmax(data.matrix() @ query.vector))]
        assert nearest.owner == query.owner


async def test_the_exact_search_finds_the_ten_nearest_of_the_owner_and_of_all(data):
    exact = ExactSearch(data)
    query = data.queries()[3]
    scores = data.matrix() @ query.vector
    own = [number for number, item in enumerate(data.items()) if item.owner == query.owner]
    assert await exact.search_all(query) == np.argsort(-scores)[:10].tolist()
    assert await exact.search(query) == sorted(own, key=lambda number: -scores[number])[:10]


async def test_ways_take_turns_in_blocks_and_the_order_is_turned_round():
    done = []

    def way(name):
        async def step(thing):
            done.append(f"{name}{thing}")

        return step

    times = await timing.alternate([1, 2, 3, 4], way("a"), way("b"), seconds=10, block=2)
    assert done == ["a1", "a2", "b1", "b2", "b3", "b4", "a3", "a4"]
    assert [len(each) for each in times] == [4, 4]
    assert [len(each) for each in await timing.alternate([1, 2, 3], way("a"), seconds=0, block=2)] == [2]


def test_of_several_rounds_the_one_with_the_median_ratio_counts_whole():
    rounds = [record(value=8, yardstick=2), record(value=9, yardstick=3), record(value=1, yardstick=1)]
    assert merged([*rounds, record("durable add")]) == [rounds[1], record("durable add")]
    assert merged([record(value=value, yardstick=None) for value in (5, 1, 3)]) == [record(value=3, yardstick=None)]
    assert percentile([3.0, 1.0, 2.0, 4.0], 0.5) == 3.0


@pytest.mark.parametrize(
    ("measure", "value", "yardstick", "said"),
    [
        ("scoped vector", 2.4, 2, "aim reached"),
        ("scoped vector", 5, 2, "at least reached"),
        ("scoped vector", 5.1, 2, "NOT REACHED"),
        ("batch add", 40, 100, "at least reached"),
        ("batch add", 34, 100, "NOT REACHED"),
        ("batch add", 60, 100, "aim reached"),
        ("disk over raw", 1.6, None, "at least reached"),
        ("recall@10 of unscoped vector", 0.998, None, "NOT REACHED"),
        ("recall over HTTP, 2 workers", 1_600, None, "aim reached"),
    ],
)
def test_each_target_knows_whether_it_is_reached(measure, value, yardstick, said):
    (line,) = [line for line in targets.lines([record(measure, value, yardstick)]) if line[1]]
    assert line[-1] == said


def test_a_figure_of_another_size_than_the_target_is_meant_for_says_so():
    lines = {line[0]: line for line in targets.lines([record(memories=20_000)])}
    assert lines["scoped recall, vector, over numpy"][1:] == [
        "1.5 ×",
        "≤ 2.5 ×",
        "≤ 1.2 ×",
        "at 20,000 only: at least reached",
    ]
    assert lines["disk over raw"][1::3] == ["", "not measured"]


@pytest.mark.parametrize("quick", [True, False])
def test_a_run_is_planned_within_its_time_and_nothing_is_read_before_it_is_written(quick):
    peers = tuple(f"peer {number}" for number in range(12))
    run = plan.Run(quick, plan.SIZES[quick], plan.SIZES[quick][-2], peers)
    parts = plan.planned(run)
    assert sum(part.expected for part in parts) <= plan.MINUTES[quick] * 60
    assert {part.name for part in parts} == {*plan.MEASURES, "grown"}
    written = [part.title for part in parts].index(f"write lamina {run.base:,}")
    assert all(number > written for number, part in enumerate(parts) if part.name in {"read", "cold", "memory", "http"})


def test_the_tables_go_between_the_marks_of_the_page():
    page = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    records = [record(), record(system="peer", value=20, memories=10_000)]
    written = report.with_figures(page, report.figures(records, told_first="Told first."))
    assert "Told first." in written
    assert "| scoped vector | 1.5 × | 10 × (at 10,000) |" in written
    assert written.partition(report.BEGIN)[0] == page.partition(report.BEGIN)[0]
    assert written.partition(report.END)[2] == page.partition(report.END)[2]
    with pytest.raises(ValueError, match="no <!-- figures: begin"):
        report.with_figures("A page.", "tables")


def test_the_chart_has_a_panel_for_what_was_measured_and_none_for_the_rest(tmp_path):
    growth = [record("growth: scoped vector", memories=memories) for memories in (1_000, 10_000)]
    heights = []
    for records in ([record()], [record(), record("batch add"), record("durable add"), *growth], []):
        assert chart.draw(tmp_path / "chart.png", records)
        content = (tmp_path / "chart.png").read_bytes()
        heights.append(int.from_bytes(content[20:24], "big"))
    assert heights[0] == heights[2] < heights[1]


def test_records_survive_the_file_and_the_pipe(tmp_path, capsys):
    records = [record(), record(value=0.1, yardstick=None, note="p95, of 10")]
    report.write_csv(tmp_path / "a.csv", records)
    assert report.read_csv(tmp_path / "a.csv") == records
    for each in records:
        store_jobs.tell(each)
    assert heard(f"noise\n{capsys.readouterr().out}") == records


@pytest.fixture(scope="module")
def stored(data, tmp_path_factory):
    """The folder of a store that `write` filled."""
    folder = tmp_path_factory.mktemp("stores") / "lamina"
    asyncio.run(store_jobs.write("lamina", data, folder, 0))
    return folder


def told(capsys):
    return {each.measure: each for each in heard(capsys.readouterr().out)}


async def test_a_tiny_run_finds_the_exact_ten_and_measures_each_way_of_recalling(data, stored, capsys):
    await store_jobs.read("lamina", data, stored, 0)
    figures = told(capsys)
    assert figures["recall@10 of scoped vector"].value == figures["recall@10 of unscoped vector"].value == 1
    modes = {f"{scope} {mode}" for scope in ("scoped", "unscoped") for mode in ("vector", "text", "hybrid")}
    assert modes <= figures.keys()
    assert all(figures[mode].ratio > 0 for mode in modes)


async def test_a_tiny_run_of_the_other_parts_tells_their_figures(data, stored, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(lamina_jobs, "THREADS", (4, 12))
    monkeypatch.setattr(lamina_jobs, "PACKS", 3)
    monkeypatch.setattr(lamina_jobs, "CHUNKED", 5_000)
    for name in ("context", "threads", "chunking", "packs"):
        await getattr(lamina_jobs, name)(data, tmp_path / name, 0)
    await store_jobs.memory("lamina", data, stored, 0)
    await store_jobs.cold("lamina", data, stored, 0)
    figures = told(capsys)
    for measure in ("context, thread of 12", "add to a thread of 12", "chunking, recursive", "discover packs"):
        assert figures[measure].value > 0
    assert figures["open to first answer"].note == ""
    assert {"resident, one scope, per 100,000", "resident, all scopes, per 100,000"} <= figures.keys()
    assert "scoped hybrid recalls among 200 memories" in await profiling.profiled(data, stored)


async def test_a_store_is_measured_beside_a_smaller_one(data, stored, tmp_path, capsys):
    base = Dataset(data.folder, SIZES[0])
    await lamina_jobs.grown(base, tmp_path / "base", 0)
    await lamina_jobs.growth(data, base, (stored, tmp_path / "base"), 0)
    figures = told(capsys)
    assert figures["growth: scoped hybrid"].note == "over that of 100 memories"
    assert figures["growth: unscoped hybrid"].memories == 200
    assert DIMENSIONS == 384


async def test_recall_over_http_answers_as_many_as_it_counts(data, stored, capsys):
    async with http_jobs.serving(data, stored, 1) as port:
        await http_jobs.throughput(data, data.queries(), port, workers=1, seconds=0.2)
    assert told(capsys)["recall over HTTP, 1 worker"].value > 0

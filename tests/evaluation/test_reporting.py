from __future__ import annotations

import dataclasses
import json

import pytest

from lamina.domain.recall import SearchMode
from lamina.errors import InvalidInput, MissingExtra
from lamina.evaluation import reporting
from lamina.evaluation.dataset import load_dataset
from lamina.evaluation.reporting import draw, markdown, write_report
from lamina.evaluation.retrieval import Asking, evaluate
from lamina.memory.factory import create_memory_engine


@pytest.fixture
async def report(ferries):
    async with await create_memory_engine(provider="memory", embedding="none") as engine:
        asking = Asking(modes=[SearchMode.TEXT], baselines=True)
        return await evaluate(load_dataset(ferries), engine, asking, configuration={"version": 2})


def test_each_answer_is_written_with_places_and_scores_and_without_texts(report, tmp_path, monkeypatch):
    monkeypatch.setattr(reporting, "can_draw", lambda: False)
    written = write_report(tmp_path / "out", [report])
    assert [path.name for path in written] == ["ferries.jsonl", "report.md"]
    content = written[0].read_text(encoding="utf-8")
    assert "leaves" not in content
    lines = [json.loads(line) for line in content.splitlines()]
    assert len(lines) == len(report.answers)
    assert lines[0]["query"] == "q1"
    assert lines[0]["ranks"] == {"a/1": 1, "a/3": 2}
    assert [document for document, _ in lines[0]["returned"]] == ["a/1", "a/3", "a/2"]  # the turn after them
    page = written[1].read_text(encoding="utf-8")
    assert report.digest in page
    assert "| all | text | 4 |" in page
    assert "| text | 1 | 100.0% | 4 | 0.0% |" in page
    assert ".png" not in page
    with pytest.raises(MissingExtra, match=r"pip install 'lamina\[eval\]'"):
        draw([report], tmp_path / "recall.png")


def test_several_sets_have_a_summary_and_names_of_their_own(report, tmp_path):
    other = dataclasses.replace(report, dataset="other")
    assert "| other | text | 4 |" in markdown([report, other])
    with pytest.raises(InvalidInput, match="same name"):
        write_report(tmp_path / "out", [report, report])
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="cannot be written"):
        write_report(tmp_path / "file", [report])


def test_a_chart_is_drawn_of_one_set_and_of_several(report, tmp_path):
    for reports in ([report], [report, dataclasses.replace(report, dataset="other")]):
        *_, chart = write_report(tmp_path / str(len(reports)), reports)
        assert chart.read_bytes().startswith(b"\x89PNG")
        assert "![recall@10](recall.png)" in (chart.parent / "report.md").read_text(encoding="utf-8")

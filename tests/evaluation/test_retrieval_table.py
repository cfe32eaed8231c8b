"""The command that makes the whole table of retrieval, on a few made-up sets."""

from __future__ import annotations

import json
import sys

import pytest

from lamina.evaluation.engines import open_cached_embedder
from lamina.testing import HashingEmbedder

pytestmark = pytest.mark.usefixtures("benchmarks")

WORDS_PEER = """
from peers.peer import Peer


class Words(Peer):
    scoped = False
    modes = frozenset({"keyword"})

    @classmethod
    def load(cls): ...

    def open(self, folder, dimensions):
        self.rows = []

    def fill(self, rows):
        self.rows += rows

    add = close = lambda self, *_: None

    def found(self, vector, text, *, owner, limit, mode):
        words = set(text.split())
        return [row.id for row in sorted(self.rows, key=lambda row: -len(words & set(row.text.split())))][:limit]
"""


@pytest.fixture
def data(write_set, ferries):
    """A set of each kind, and a folder of something else."""
    turn = {"group": "g", "event_type": "fact_introduction"}
    write_set(
        "events",
        [{"id": "t1", "text": "the berth is pier 3", "meta": turn}],
        [{"id": "q1", "text": "which berth", "meta": {"group": "g"}}],
        qrels=[],
        qrels_forbidden=[("q1", "t1", 1)],
    )
    said = {"user_id": "test-user", "scope": ["boats"], "type": "preference", "pinned": False, "confidence": 0.9}
    expected = {"relevantBeliefs": {"shouldOnlyInclude": ["sail"]}}
    write_set(
        "beliefs",
        [{"id": "sail", "text": "sails with a gaff rig", "meta": {**said, "superseded_by": None, "resolved_at": None}}],
        [{"id": "q1", "text": "which rig", "meta": {"scope": ["boats"], "case": {}, "expect": expected}}],
        qrels=[],
    )
    (ferries.parent / "notes").mkdir()
    return ferries.parent


@pytest.fixture
def retrieval(tmp_path, monkeypatch):
    """The command, with two more peers: one that finds by words, and one that is not there."""
    import peers
    import retrieval

    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "words_peer.py").write_text(WORDS_PEER, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    monkeypatch.setitem(peers.PEERS, "words", ("words_peer", "Words"))
    monkeypatch.setitem(peers.PEERS, "absent", ("no_such_peer", "Absent"))
    embedder = {"embed": HashingEmbedder()}
    monkeypatch.setattr(retrieval, "open_cached_embedder", lambda _, cache: open_cached_embedder(embedder, cache))
    yield retrieval
    sys.modules.pop("words_peer", None)


def test_every_set_is_measured_by_what_it_holds_and_once_only(retrieval, data, tmp_path, capsys):
    out = tmp_path / "report"
    command = [str(data), "--out", str(out), "--cache", str(tmp_path / "v.db"), "--peer", "words", "--peer", "absent"]
    retrieval.main(command)
    report = (out / "report.md").read_text(encoding="utf-8")
    found = {line.split(" | ")[1]: line.split(" | ")[2:5] for line in report.splitlines() if line.startswith("| all |")}
    assert found["hybrid"][0] == "4"
    assert found["peer: words"] == ["4", "1.000", "1.000"]  # no group has more than three documents
    assert "| none | 1 of 1 |" in report
    assert "| all | stored | 0.000 | 100.0% |" in report
    assert "* absent (ferries): ModuleNotFoundError: No module named 'no_such_peer'" in report
    answers = [json.loads(line) for line in (out / "ferries.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {answer["query"] for answer in answers if answer["way"] == "peer: words"} == {"q1", "q2", "q3", "q5"}

    capsys.readouterr()
    (out / "beliefs.json").unlink()
    retrieval.main(command)
    told = [line.split(" ", 1)[1] for line in capsys.readouterr().err.splitlines()]
    assert told == ["beliefs: precision, 1 documents, 1 questions", "events: there already", "ferries: there already"]
    assert (out / "report.md").read_text(encoding="utf-8") == report


def test_a_peer_that_is_too_slow_is_stopped_and_the_report_says_so(retrieval, data, tmp_path):
    retrieval.main([str(data), "ferries", "--out", str(tmp_path / "slow"), "--peer", "words", "--limit", "0"])
    stopped = "* words (ferries): TooSlow: stopped at the limit of 0 s for a set, with 0 of 4 questions asked"
    assert stopped in (tmp_path / "slow" / "report.md").read_text(encoding="utf-8")


def test_a_sample_is_spread_over_the_set_and_keeps_the_groups_of_its_questions(ferries):
    import retrieval

    from lamina.evaluation.dataset import load_dataset

    sample = retrieval.sampled(load_dataset(ferries), 2)
    assert [query.id for query in sample.queries] == ["q1", "q3"]
    assert len(sample.documents) == 5
    assert retrieval.sampled(load_dataset(ferries), 9).queries == load_dataset(ferries).queries

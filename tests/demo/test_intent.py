from __future__ import annotations

import dataclasses
import io

import pytest
from rich.console import Console

from lamina.demo import intent
from lamina.demo.intent import compute_for_intent
from lamina.demo.texts import load_documents, load_expected_context, load_extra_memories, load_thread, load_turns
from lamina.memory.factory import create_memory_engine


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=200)


@pytest.fixture
async def path(tmp_path):
    """A file with the demo's conversations, as its earlier steps leave it."""
    async with await create_memory_engine(provider="sqlite", path=tmp_path / "demo.db") as engine:
        await engine.store_many([turn.as_item() for turn in load_turns()])
    return tmp_path / "demo.db"


@pytest.fixture(autouse=True)
def _unknown_user(monkeypatch, tmp_path):
    """Nobody whose settings name a model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


async def test_the_context_holds_what_is_expected_from_every_source_and_nothing_of_another_owner(console, path):
    report = await compute_for_intent(console, path, environ={})
    assert report.missing == ()
    assert report.leaked == ()
    assert not report.over_budget
    assert report.dropped > 0
    assert 0 < report.tokens <= report.token_budget
    assert {"longterm", "session", "knowledge", "documents", "summary", "conversation", "goal"} <= set(report.sources)
    assert report.as_expected
    shown = console.file.getvalue()
    assert all(words in shown for words in ("of 1600", "budget", "guides/roof-gardens.md", "No language model"))
    assert report.answered is None
    assert "tomas" not in shown.lower()
    assert "private/bakery-roof.md" not in shown


async def test_the_strangers_texts_would_answer_too_if_they_were_not_somebody_elses(console, path, monkeypatch):
    shared = [{**document, "owner": None} for document in load_documents()]
    monkeypatch.setattr(intent, "load_documents", lambda: shared)
    monkeypatch.setattr(
        intent, "load_expected_context", lambda: expected(documents=("private/bakery-roof.md",), budget=4_000)
    )
    assert (await compute_for_intent(console, path, environ={})).missing == ()


def expected(*, budget=None, **changes):
    found = dataclasses.replace(load_expected_context(), **changes)
    return found if budget is None else dataclasses.replace(found, token_budget=budget)


@pytest.mark.parametrize(
    "changes",
    [
        {"memories": ("mira-21", "tomas-02")},
        {"documents": ("private/bakery-roof.md",)},
        {"in_summary": ("Olga",)},
    ],
)
async def test_what_is_expected_and_not_there_is_reported(console, path, monkeypatch, changes):
    monkeypatch.setattr(intent, "load_expected_context", lambda: expected(**changes))
    report = await compute_for_intent(console, path, environ={})
    assert report.missing == (next(iter(changes.values()))[-1],)
    assert not report.as_expected


async def test_what_belongs_to_another_owner_is_reported_as_leaked(console, path, monkeypatch):
    monkeypatch.setattr(intent, "load_turns", lambda: [dataclasses.replace(t, owner="lin") for t in load_turns()])
    report = await compute_for_intent(console, path, environ={})
    assert "mira-21" in report.leaked
    assert not report.as_expected


async def test_a_budget_that_holds_everything_shows_nothing_and_is_not_as_expected(console, path, monkeypatch):
    monkeypatch.setattr(intent, "load_expected_context", lambda: expected(budget=8_000))
    report = await compute_for_intent(console, path, environ={})
    assert (report.dropped, report.as_expected) == (0, False)


def settings(server):
    return {
        "LAMINA_MODEL__PROVIDER": "http",
        "LAMINA_MODEL__MODEL": "m",
        "LAMINA_MODEL__BASE_URL": server.url,
    }


async def test_a_model_that_the_settings_name_answers_from_this_context(console, path, server):
    server.plays(server.chat("Bring permit OBR-2025-1183."))
    report = await compute_for_intent(console, path, environ=settings(server))
    assert report.answered
    assert "http:m answers: Bring permit OBR-2025-1183." in console.file.getvalue()
    sent = server.requests[0].body.decode()
    assert "OBR-2025-1183" in sent
    assert "bakery" not in sent


async def test_a_model_that_fails_is_told_of_and_the_context_stands(console, path, server):
    server.plays(server.error(401))
    report = await compute_for_intent(console, path, environ=settings(server))
    assert report.answered is False
    assert report.as_expected
    assert "http:m did not answer." in console.file.getvalue()


def test_the_texts_are_those_of_the_last_step():
    assert len(load_thread()) > intent.WINDOW
    assert {document["owner"] for document in load_documents()} == {None, "tomas"}
    assert {item["layer"] for item in load_extra_memories()} == {"longterm", "session", "global"}

"""The demo's conversations and questions, which ship with the package."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from typing import Any, Final

__all__ = [
    "CONVERSATIONS",
    "ExpectedContext",
    "Question",
    "Turn",
    "load_documents",
    "load_expected_context",
    "load_extra_memories",
    "load_questions",
    "load_thread",
    "load_turns",
]

CONVERSATIONS: Final = ("mira", "tomas", "lin", "jonas", "team")


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing that was said, by whom and when."""

    id: str
    owner: str
    namespace: str
    date: datetime
    speaker: str
    text: str
    layer: str
    tags: tuple[str, ...]

    @property
    def content(self) -> str:
        """What is remembered: day and speaker stand in the text, because questions ask for them."""
        return f"[{self.date.day} {self.date:%B %Y}] {self.speaker}: {self.text}"

    def as_item(self) -> dict[str, Any]:
        """What `store_many` takes."""
        return {
            "id": self.id,
            "content": self.content,
            "owner": self.owner,
            "namespace": self.namespace,
            "layer": self.layer,
            "tags": self.tags,
            "metadata": {"speaker": self.speaker},
            "occurred_at": self.date,
            "source": f"demo:{self.owner}",
        }


@dataclass(frozen=True, slots=True)
class Question:
    """A question, who asks it, and the id of the memory that answers it.

    `earlier` is a memory that the expected one overtook, where the truth has changed.
    """

    owner: str
    question: str
    expected: str
    note: str
    earlier: str | None = None


@dataclass(frozen=True, slots=True)
class ExpectedContext:
    """An intent, and what its context should hold: ids of memories, names of documents, words of the summary."""

    goal: str
    owner: str
    thread_id: str
    token_budget: int
    memories: tuple[str, ...]
    documents: tuple[str, ...]
    in_summary: tuple[str, ...]


def load_turns() -> list[Turn]:
    """Every turn of every conversation, in the order in which it was said within each."""
    turns = []
    for name in CONVERSATIONS:
        for line in _lines(name):
            when = datetime.fromisoformat(line.pop("date"))
            turns.append(Turn(date=when, tags=tuple(line.pop("tags")), **line))
    return turns


def load_questions() -> list[Question]:
    """The ten questions."""
    return [Question(**line) for line in _lines("questions")]


def load_expected_context() -> ExpectedContext:
    """The intent of the last step."""
    fields: dict[str, Any] = json.loads(_text("intent.json"))
    for name in ("memories", "documents", "in_summary"):
        fields[name] = tuple(fields[name])
    return ExpectedContext(**fields)


def load_extra_memories() -> list[dict[str, Any]]:
    """Memories of other layers than the conversations have, as `store_many` takes them."""
    return list(_lines("extra"))


def load_thread() -> list[dict[str, Any]]:
    """The messages of the intent's thread."""
    return list(_lines("thread"))


def load_documents() -> list[dict[str, Any]]:
    """Documents: `source`, `owner` (None: shared), `category` and `text`."""
    return list(_lines("documents"))


def _lines(name: str) -> Iterator[dict[str, Any]]:
    yield from map(json.loads, _text(f"{name}.jsonl").splitlines())


def _text(name: str) -> str:
    return files("lamina.demo").joinpath("texts", name).read_text(encoding="utf-8")

"""What the contract's tests are made of: instants, threads, events, and short ways to fill and read a store."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from lamina.domain.document import Document
from lamina.domain.message import Message, Role
from lamina.domain.thread import Summary, Thread, ThreadEvent, ThreadRef
from lamina.ports.state_store import StateStore

__all__ = [
    "LOOKALIKES",
    "NOW",
    "REF",
    "begin",
    "document",
    "event",
    "fill",
    "ids",
    "indexes",
    "said",
    "second",
    "summary",
    "thread",
]

NOW: Final = datetime(2031, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)
REF: Final = ThreadRef("acme", "t1")

LOOKALIKES: Final = ("a", "a_", "a%", "A", "aa", "a ", "ä", "a\u0308", "*", "a'--", "%", "_")
"""Names that a comparison by prefix, pattern, case or normal form takes for one another."""


def second(number: float) -> datetime:
    """The instant this many seconds after `NOW`."""
    return NOW + timedelta(seconds=number)


def thread(ref: ThreadRef = REF, **fields: Any) -> Thread:
    """The head of a new thread."""
    return Thread(
        **{"id": ref.id, "tenant": ref.tenant, "kind": ref.kind, "created_at": NOW, "updated_at": NOW, **fields}
    )


def event(id: str, content: str = "", *, role: Role = Role.USER, tokens: int = 2, **fields: Any) -> ThreadEvent:
    """An event whose message says its id, unless told otherwise."""
    return ThreadEvent(Message(role, content or f"says {id}", id=id, **fields), tokens=tokens, counter="estimate")


def summary(to_index: int, text: str = "what was said", **fields: Any) -> Summary:
    """A summary of all messages up to this index."""
    return Summary(**{"text": text, "from_index": 1, "to_index": to_index, "created_at": NOW, **fields})


def document(id: str = "d1", **fields: Any) -> Document:
    """The head of a document that is shared in the tenant."""
    return Document(**{"id": id, "tenant": "acme", "source": f"{id}.md", "ingested_at": NOW, **fields})


async def begin(store: StateStore, *refs: ThreadRef, **fields: Any) -> None:
    """Make these threads, or `REF`."""
    for ref in refs or (REF,):
        await store.create_thread(thread(ref, **fields))


async def fill(store: StateStore, number: int, ref: ThreadRef = REF) -> list[ThreadEvent]:
    """Make the thread, with messages m1 to m<number> of two tokens each."""
    await begin(store, ref)
    return await store.append(ref, [event(f"m{each}") for each in range(1, number + 1)], now=NOW)


async def said(store: StateStore, ref: ThreadRef = REF, **options: Any) -> list[str]:
    """The ids of the thread's messages, in order."""
    return ids(await store.events(ref, **options))


def ids(events: Iterable[ThreadEvent]) -> list[str]:
    """The ids of the messages, in order."""
    return [each.message.id for each in events]


def indexes(events: Iterable[ThreadEvent]) -> list[int]:
    """The indexes of the messages, in order."""
    return [each.message.index for each in events]

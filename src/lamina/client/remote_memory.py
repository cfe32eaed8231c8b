"""Short-term memory whose sessions are kept, and managed in their size, by a server."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Self, TypeVar

import httpx2

from lamina.client.reading import event_of as read_event
from lamina.client.reading import message_of
from lamina.client.resource import Resource, sendable
from lamina.client.threads import sendable_message
from lamina.client.transport import Request, Transport
from lamina.conversation.compaction import compaction_of, decompress_event
from lamina.conversation.memory_events import DEFAULT_SESSION, MemoryEvent, MemoryEventInput, event_of, session_of
from lamina.conversation.messages import new_message_id
from lamina.conversation.structured import StructuredSummary, summary_from_json
from lamina.conversation.structured_summarizer import SUMMARY_KEY
from lamina.conversation.tiers import ContextReport, Tier
from lamina.domain.memory import UNSET, Unset
from lamina.domain.message import ContentPart, Message, Role
from lamina.domain.message_json import message_to_json
from lamina.domain.storable import storable_event
from lamina.domain.text import check_name, is_blank
from lamina.domain.thread import ThreadEvent
from lamina.domain.validation import check_whole_number
from lamina.domain.wire_fields import as_mapping
from lamina.errors import InvalidInput, InvalidType, NotFound
from lamina.ports.clock import IdFactory

__all__ = ["RemoteMemory"]

T = TypeVar("T")

_ROOT: Final = ("v1", "sessions")
_PAGE: Final = 100
_MOST: Final = 2**40
_MOST_AT_ONCE: Final = 1000


class RemoteMemory(Resource):
    """The interface of `lamina.BaseMemory` over HTTP: the server's store, model and settings do the work.

    Calls that name no session mean `session`. The id of a session is the tenant's: one that another owner has begun
    cannot be added to, and is otherwise as one that there is not. Each message is sent with an id, so that repeating
    a call whose answer was lost adds nothing twice. Nothing needs to be opened. `close` lets go of the connections.

    Raises:
        ConfigError: the address, the token or a limit cannot be used.
        InvalidInput: nobody can have the owner's name, or no session can be called so.
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None = None,
        owner: str | None = None,
        session: str = DEFAULT_SESSION,
        timeout: float = 30.0,
        max_retries: int = 3,
        new_id: IdFactory = new_message_id,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(
            Transport(base_url, token=token, timeout=timeout, max_retries=max_retries, transport=transport),
            None if owner is None else check_name("owner", owner),
        )
        self.session = check_name("session", session)
        self._new_id = new_id

    def __repr__(self) -> str:
        return f"RemoteMemory({self._transport.base_url!r}, owner={self._owner!r}, session={self.session!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections of this event loop. Idempotent; the next call opens new ones."""
        await self._transport.close()

    async def add(self, event: MemoryEventInput, session_id: str | None = None) -> MemoryEvent:
        """Add an event at the end of its session, and return it as it is kept: see `BaseMemory.add`."""
        return (await self.add_list([event], session_id))[0]

    async def add_list(
        self, events: Iterable[MemoryEventInput], session_id: str | None = None
    ) -> builtins.list[MemoryEvent]:
        """Add events in order, those of one session all or none, up to 1,000 at a time."""
        if isinstance(events, str | Mapping) or not isinstance(events, Iterable):
            raise InvalidType("events", "must be a list", "Use add for a single event.")
        read = [self._event(event) for event in events]
        by_session: dict[str, builtins.list[int]] = {}
        for place, event in enumerate(read):
            named = session_id is not None or _names_a_session(event)
            session = session_of(event, session_id) if named else self.session
            by_session.setdefault(session, []).append(place)
        added = [*read]
        for session, places in by_session.items():
            for start in range(0, len(places), _MOST_AT_ONCE):
                batch = places[start : start + _MOST_AT_ONCE]
                body = {"format": "lamina", "events": [_sendable_event(read[place]) for place in batch]}
                kept = await self._ask(self._at(session, "events", method="POST", body=body), _events)
                for place, event in zip(batch, kept, strict=True):
                    added[place] = event
        return added

    async def update(
        self,
        id: str | int,
        session_id: str | None = None,
        *,
        content: str | builtins.list[ContentPart] | Unset = UNSET,
        state: Mapping[str, Any] | Unset = UNSET,
        metadata: Mapping[str, Any] | Unset = UNSET,
    ) -> MemoryEvent:
        """Change an event's content, state or metadata, and return it: see `BaseMemory.update`."""
        body = _changes(content, state, metadata)
        return await self._ask(self._event_at(id, session_id, method="PATCH", body=body), read_event)

    async def delete(self, id: str | int, session_id: str | None = None) -> int:
        """Delete the message of this id or index for good, and return how many were deleted; 0 if there is none."""
        asked = self._event_at(id, session_id, method="DELETE")
        return await self._of_session(asked, lambda answer: int(answer["deleted"]), 0)

    async def clear(self, session_id: str | None = None) -> int:
        """Delete a session with its archive and summaries, or, without an id, all sessions; how many there were."""
        path = _ROOT if session_id is None else (*_ROOT, check_name("session_id", session_id))
        asked = Request(method="DELETE", path=path, query={"owner": self._owner})
        return await self._of_session(asked, lambda answer: int(answer["cleared"]), 0)

    async def tier(self, session_id: str | None = None) -> Tier:
        """In which tier the session is now."""
        head = await self._head(self._named(session_id))
        return Tier.NORMAL if head is None else Tier(head["tier"])

    async def manage_context(self, session_id: str | None = None) -> ContextReport:
        """Compact and summarise as the session's size asks for; nothing, if it is small."""
        asked = self._at(self._named(session_id), "compact", method="POST")
        return await self._of_session(asked, _report, ContextReport(Tier.NORMAL, 0, 0))

    async def get_context(
        self, session_id: str | None = None, *, max_tokens: int | None = None
    ) -> builtins.list[Message]:
        """What to send to a model: see `BaseMemory.get_context`."""
        if max_tokens is not None:
            check_whole_number("max_tokens", max_tokens, 1, _MOST)
        asked = self._at(self._named(session_id), "context", query={"max_tokens": max_tokens})
        return await self._of_session(asked, lambda answer: [message_of(each) for each in answer["data"]], [])

    async def restore(self, session_id: str, message_id: str | int) -> MemoryEvent:
        """Put a compacted message back in full, and return it; it is not compacted again."""
        return await self._ask(self._event_at(message_id, session_id, "restore", method="POST"), read_event)

    async def list(
        self,
        *,
        limit: int | None = None,
        offset: int = 0,
        order: str = "asc",
        max_tokens: int | None = None,
        session_id: str | None = None,
    ) -> builtins.list[MemoryEvent]:
        """The events as a model would be shown them: see `BaseMemory.list`."""
        if order not in ("asc", "desc"):
            raise InvalidInput("order", f"{order!r:.50} is unknown", "Use asc or desc.")
        check_whole_number("offset", offset, 0, _MOST)
        if limit is not None:
            check_whole_number("limit", limit, 0, _MOST)
        if max_tokens is not None:
            check_whole_number("max_tokens", max_tokens, 1, _MOST)
        query = {"limit": limit, "offset": offset, "order": order, "max_tokens": max_tokens}
        return await self._of_session(self._at(self._named(session_id), "events", query=query), _events, [])

    async def retrieve(
        self, text: str, session_id: str | None = None, *, limit: int = 10
    ) -> builtins.list[MemoryEvent]:
        """The events whose original text holds this one, best first: see `BaseMemory.retrieve`. At most 100."""
        if not isinstance(text, str):
            raise InvalidType("text", f"must be text, not {type(text).__name__}", "Give a str.")
        if is_blank(text):
            raise InvalidInput("text", "is blank", "Say what to look for.")
        body = {"text": text, "limit": limit}
        asked = self._at(self._named(session_id), "search", method="POST", body=body, reads=True)
        return await self._of_session(asked, _events, [])

    async def get_count(self, session_id: str | None = None) -> int:
        """How many events `list` returns."""
        head = await self._head(self._named(session_id))
        return 0 if head is None else int(head["count"])

    async def is_empty(self, session_id: str | None = None) -> bool:
        """Whether `list` returns nothing."""
        return await self.get_count(session_id) == 0

    async def get_session_ids(self) -> builtins.list[str]:
        """The ids of all sessions, newest activity first."""
        return [each async for each in self._pages(_ROOT, {"owner": self._owner}, str)]

    async def has_session(self, session_id: str) -> bool:
        """Whether the session was begun and not cleared."""
        return await self._head(check_name("session_id", session_id)) is not None

    async def get_summaries(self, session_id: str | None = None) -> builtins.list[StructuredSummary]:
        """All summaries that were ever current, newest first; each covers what the one before it covered."""
        asked = self._at(self._named(session_id), "summaries")
        return await self._of_session(asked, lambda answer: [summary_from_json(each) for each in answer["data"]], [])

    async def archived(
        self, session_id: str | None = None, *, limit: int | None = None, offset: int = 0
    ) -> builtins.list[MemoryEvent]:
        """The originals of the messages that a summary stands for, in order."""
        if limit is not None:
            check_whole_number("limit", limit, 0, _MOST)
        check_whole_number("offset", offset, 0, _MOST)
        found: builtins.list[MemoryEvent] = []
        while limit is None or len(found) < limit:
            size = _PAGE if limit is None else min(_PAGE, limit - len(found))
            query = {"limit": size, "offset": offset + len(found)}
            asked = self._at(self._named(session_id), "archive", query=query)
            page: builtins.list[MemoryEvent] = await self._of_session(asked, _events, [])
            found += page
            if len(page) < size:
                break
        return found

    async def expand(self, reference: str | int, session_id: str | None = None) -> Message:
        """The original message of this id or index (`#12`), compacted, archived or not.

        Raises:
            MessageNotFound: the session has no such message.
        """
        return await self._ask(self._event_at(reference, session_id), message_of)

    def decompress_event(self, event: MemoryEvent) -> MemoryEvent:
        """A copy with the original content; an event that is not compacted as it is."""
        return decompress_event(event)

    def decompress_events(self, events: Iterable[MemoryEvent]) -> builtins.list[MemoryEvent]:
        """Copies with the original contents, in order."""
        return [decompress_event(event) for event in events]

    def _named(self, session_id: str | None) -> str:
        return self.session if session_id is None else check_name("session_id", session_id)

    def _event(self, given: MemoryEventInput) -> ThreadEvent:
        """The event as it can be sent: what cannot be kept is refused here, and nothing was sent."""
        event = event_of(given)
        if SUMMARY_KEY in event.state:
            raise InvalidInput(f"state.{SUMMARY_KEY}", "is kept for summaries", "Use another key.")
        compaction_of(event)
        message = event.message
        id = check_name("message.id", message.id) if message.id else self._new_id()
        return storable_event(ThreadEvent(message.replace(id=id, index=0), dict(event.state)))

    async def _head(self, session: str) -> Mapping[str, Any] | None:
        return await self._of_session(self._at(session), _head_of, None)

    async def _of_session(self, asked: Request, read: Callable[[Mapping[str, Any]], T], nothing: T) -> T:
        """What the server answers of a session; of one that there is not, `nothing`, as in the library."""
        try:
            return await self._ask(asked, read)
        except NotFound:
            return nothing

    def _at(self, session: str, *below: str, query: Mapping[str, Any] | None = None, **more: Any) -> Request:
        path = (*_ROOT, session, *below)
        return Request(**{"method": "GET", **more}, path=path, query={"owner": self._owner, **(query or {})})

    def _event_at(self, reference: str | int, session_id: str | None, *below: str, **more: Any) -> Request:
        session = self._named(session_id)
        if isinstance(reference, bool) or not isinstance(reference, str | int):
            problem = f"must be a message id or an index, not {type(reference).__name__}"
            raise InvalidType("id", problem, "Give one of them.")
        if isinstance(reference, int):
            check_whole_number("id", reference, 1, 2**31 - 1)
            return self._at(session, "events", str(reference), *below, query={"by_index": True}, **more)
        return self._at(session, "events", check_name("id", reference), *below, **more)


def _names_a_session(event: ThreadEvent) -> bool:
    return any(event.state.get(key) is not None for key in ("session_id", "sessionId"))


def _sendable_event(event: ThreadEvent) -> dict[str, Any]:
    return sendable({"message": sendable_message(event.message), "state": event.state})


def _changes(content: Any, state: Any, metadata: Any) -> dict[str, Any]:
    """What is given of these, as it can be sent: what cannot be kept is refused here."""
    given = {"content": content, "state": state, "metadata": metadata}
    given = {name: value for name, value in given.items() if not isinstance(value, Unset)}
    for name in {"state", "metadata"} & given.keys():
        given[name] = dict(as_mapping(name, given[name]))
    message = Message(Role.USER, given.get("content", ""), id="changed", metadata=given.get("metadata", {}))
    event = storable_event(ThreadEvent(message, given.get("state", {})))
    form = {"content": "", "metadata": {}, **message_to_json(event.message), "state": event.state}
    return {name: form[name] for name in given}


def _head_of(answer: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return dict(answer)


def _report(answer: Mapping[str, Any]) -> ContextReport:
    return ContextReport(**{**answer, "tier": Tier(answer["tier"])})


def _events(answer: Mapping[str, Any]) -> list[MemoryEvent]:
    return [read_event(each) for each in answer["data"]]

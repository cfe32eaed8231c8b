"""Reading sessions of short-term memory: listings, search, summaries, the archive, and originals."""

from __future__ import annotations

import builtins
import unicodedata
from collections.abc import Iterable
from datetime import datetime

from lamina.conversation.compaction import decompress_event
from lamina.conversation.context_window import fit
from lamina.conversation.memory_events import MemoryEvent, named_session
from lamina.conversation.session_store import SessionStore
from lamina.conversation.structured import StructuredSummary, summary_from_json
from lamina.conversation.tiering import summary_event
from lamina.domain.message import Message
from lamina.domain.text import is_blank
from lamina.domain.thread import ThreadEvent
from lamina.domain.validation import check_whole_number
from lamina.errors import InvalidInput, InvalidType
from lamina.ports.token_counter import TokenCounter

__all__ = ["SessionReader"]

_MOST = 2**40


class SessionReader:
    """What `BaseMemory` can be asked; everything returned is the caller's own."""

    counter: TokenCounter
    _sessions: SessionStore

    async def list(
        self,
        *,
        limit: int | None = None,
        offset: int = 0,
        order: str = "asc",
        max_tokens: int | None = None,
        session_id: str | None = None,
    ) -> list[MemoryEvent]:
        """The events as a model would be shown them: the summary first, then in order of index.

        Messages of the role system come right after the summary once it covers them. With `order="desc"` the
        newest come first. `max_tokens` leaves the newest that fit, tool calls and their results together, as
        `get_context` does. `limit` and `offset` page through what is left, one by one.

        Raises:
            ContextOverflowError: summary and system messages alone are above `max_tokens`.
        """
        if order not in ("asc", "desc"):
            raise InvalidInput("order", f"{order!r:.50} is unknown", "Use asc or desc.")
        check_whole_number("offset", offset, 0, _MOST)
        if limit is not None:
            check_whole_number("limit", limit, 0, _MOST)
        shown = await self._shown(session_id)
        if max_tokens is not None:
            check_whole_number("max_tokens", max_tokens, 1, _MOST)
            places = fit([event.message for event in shown], max_tokens, self.counter.count)
            shown = [shown[place] for place in places]
        if order == "desc":
            shown.reverse()
        return shown[offset : None if limit is None else offset + limit]

    async def retrieve(
        self, text: str, session_id: str | None = None, *, limit: int = 10
    ) -> builtins.list[MemoryEvent]:
        """The events whose original text holds this one, best first: by how often, then the newest.

        Letter case and the Unicode form do not count. Compacted and archived messages are searched by
        their originals, and returned in full.
        """
        if not isinstance(text, str):
            raise InvalidType("text", f"must be text, not {type(text).__name__}", "Give a str.")
        if is_blank(text):
            raise InvalidInput("text", "is blank", "Give what to look for.")
        check_whole_number("limit", limit, 0, _MOST)
        head = await self._sessions.head(named_session(session_id))
        if head is None:
            return []
        wanted = _folded(text)
        hits: builtins.list[tuple[int, int, ThreadEvent]] = []
        async for page in self._sessions.pages(head):
            for event in page:
                original = decompress_event(event)
                times = _folded(original.message.text).count(wanted)
                if times:
                    hits.append((times, original.message.index, original))
        hits.sort(key=lambda hit: hit[:2], reverse=True)
        return [event for _, _, event in hits[:limit]]

    async def get_count(self, session_id: str | None = None) -> int:
        """How many events `list` returns."""
        head = await self._sessions.head(named_session(session_id))
        if head is None:
            return 0
        live, _ = await self._sessions.state.live_size(head.ref)
        return live + len(await self._sessions.system(head)) + bool(head.folded_through)

    async def is_empty(self, session_id: str | None = None) -> bool:
        """Whether `list` returns nothing."""
        return await self.get_count(session_id) == 0

    async def get_session_ids(self) -> builtins.list[str]:
        """The ids of all sessions, newest activity first."""
        return [head.id for head in await self._sessions.all_heads()]

    async def list_sessions(
        self, *, limit: int = 100, after: tuple[datetime, str] | None = None
    ) -> builtins.list[tuple[datetime, str]]:
        """The last activity and the id of each session, newest activity first; `after` goes on behind one of them."""
        return [(head.updated_at, head.id) for head in await self._sessions.heads(limit, after)]

    async def has_session(self, session_id: str) -> bool:
        """Whether the session was begun and not cleared."""
        return await self._sessions.head(session_id) is not None

    async def get_summaries(self, session_id: str | None = None) -> builtins.list[StructuredSummary]:
        """All summaries that were ever current, newest first; each covers what the one before it covered."""
        head = await self._sessions.head(named_session(session_id))
        chain = [] if head is None else await self._sessions.summaries(head)
        return [summary_from_json(each.form or each.text) for each in chain]

    async def archived(
        self, session_id: str | None = None, *, limit: int | None = None, offset: int = 0
    ) -> builtins.list[MemoryEvent]:
        """The originals of the messages that a summary stands for, in order."""
        if limit is not None:
            check_whole_number("limit", limit, 0, _MOST)
        check_whole_number("offset", offset, 0, _MOST)
        head = await self._sessions.head(named_session(session_id))
        if head is None or not head.folded_through:
            return []
        found: builtins.list[MemoryEvent] = []
        async for page in self._sessions.pages(head, through=head.folded_through):
            found += self.decompress_events(page)
            if limit is not None and len(found) >= offset + limit:
                break
        return found[offset : None if limit is None else offset + limit]

    async def expand(self, reference: str | int, session_id: str | None = None) -> Message:
        """The original message of this id or index (`#12`), compacted, archived or not; the session stays as it is.

        Raises:
            MessageNotFound: the session has no such message.
        """
        _, event = await self._sessions.find_or_raise(named_session(session_id), reference)
        return decompress_event(event).message

    def decompress_event(self, event: MemoryEvent) -> MemoryEvent:
        """A copy with the original content; an event that is not compacted as it is."""
        return decompress_event(event)

    def decompress_events(self, events: Iterable[MemoryEvent]) -> builtins.list[MemoryEvent]:
        """Copies with the original contents, in order."""
        return [decompress_event(event) for event in events]

    async def _shown(self, session_id: str | None) -> builtins.list[ThreadEvent]:
        head = await self._sessions.head(named_session(session_id))
        if head is None:
            return []
        summary = await self._sessions.summaries(head, limit=1) if head.folded_through else []
        shown = [summary_event(each, self.counter) for each in summary]
        return [*shown, *await self._sessions.system(head), *await self._sessions.live(head)]


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()

"""Sessions of short-term memory as a resource: what `lamina.client.RemoteMemory` talks to."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Annotated, Literal, TypeVar

from fastapi import APIRouter, Query, status

from lamina.conversation.short_term import BaseMemory
from lamina.conversation.tiers import ContextReport, Tier
from lamina.domain.instants import to_micros
from lamina.domain.message_json import message_to_json
from lamina.errors import Conflict, InvalidInput, MessageNotFound, ScopeError
from lamina.server.caller import Caller, Reader, Writer
from lamina.server.foreign import foreign_as, unless_foreign
from lamina.server.paging import Page, Paging
from lamina.server.principal import Access
from lamina.server.problems import Problem
from lamina.server.routes.segments import SegmentRoute
from lamina.server.wire.messages import MessageForm
from lamina.server.wire.sessions import (
    Cleared,
    Deleted,
    Event,
    EventChanges,
    Events,
    Managed,
    NewEvents,
    Search,
    Session,
    Summaries,
)
from lamina.server.wire.strict import Flag, Name
from lamina.server.wire.threads import Messages

__all__ = ["router"]

T = TypeVar("T")

MAX_OFFSET = 2**40
MAX_INDEX_DIGITS = 10

router = APIRouter(prefix="/v1/sessions", tags=["sessions"], route_class=SegmentRoute)

ByIndex = Annotated[Flag, Query(description="Whether the event is named by its index and not by its id.")]
MaxTokens = Annotated[int | None, Query(ge=1, le=2**40)]
Most = Annotated[int | None, Query(ge=0, le=MAX_OFFSET)]
Offset = Annotated[int, Query(ge=0, le=MAX_OFFSET)]


@router.get("", summary="List sessions")
async def list_sessions(caller: Reader, paging: Paging, owner: Name | None = None) -> Page[Name]:
    """The ids of all sessions, the newest activity first. Pages tile: nothing is shown twice.

    What is begun or used meanwhile comes before the first page.
    """
    rows = await _memory(caller, owner).list_sessions(limit=paging.limit + 1, after=paging.instant)
    return paging.sorted(rows, lambda row: row[1], lambda row: (to_micros(row[0]), row[1]))


@router.delete("", summary="Delete all sessions")
async def clear_sessions(caller: Writer, owner: Name | None = None) -> Cleared:
    """With their archives and summaries. Without an owner: those of the whole tenant, which takes the scope admin."""
    if caller.owner(owner) is None and Access.ADMIN not in caller.principal.access:
        raise ScopeError("This deletes the sessions of all owners, and the token does not have the scope 'admin'.")
    return Cleared(cleared=await _memory(caller, owner).clear())


@router.get("/{session}", summary="One session")
async def get_session(caller: Reader, session: Name, owner: Name | None = None) -> Session:
    """How large it is."""
    memory = _memory(caller, owner)
    await _check_there(memory, session)
    count = await unless_foreign(memory.get_count(session), 0)
    tier = await unless_foreign(memory.tier(session), Tier.NORMAL)
    return Session(id=session, count=count, tier=tier.value)


@router.delete("/{session}", summary="Delete a session")
async def clear_session(caller: Writer, session: Name, owner: Name | None = None) -> Cleared:
    """With its archive and summaries: none of its messages is left."""
    cleared = await unless_foreign(_memory(caller, owner).clear(session), 0)
    if not cleared:
        raise _not_found(session)
    return Cleared(cleared=cleared)


@router.get("/{session}/events", summary="The events of a session")
async def list_events(
    caller: Reader,
    session: Name,
    *,
    owner: Name | None = None,
    limit: Most = None,
    offset: Offset = 0,
    order: Literal["asc", "desc"] = "asc",
    max_tokens: MaxTokens = None,
) -> Events:
    """As a model would be shown them: the summary first, then in order. Bounded by what the server's settings keep.

    `max_tokens` leaves the newest that fit.
    """
    memory = _memory(caller, owner)
    shown = memory.list(limit=limit, offset=offset, order=order, max_tokens=max_tokens, session_id=session)
    return Events.of(await _of_session(memory, session, shown, []))


@router.post("/{session}/events", status_code=status.HTTP_201_CREATED, summary="Add events")
async def add_events(caller: Writer, session: Name, body: NewEvents, owner: Name | None = None) -> Events:
    """Add events at the end, all or none, and begin the session if there is none; then manage its size.

    Under an id of the client's own, adding a message again changes nothing. The id of a session is the tenant's: one
    that another owner has begun is a conflict.
    """
    memory = _memory(caller, owner)
    with foreign_as(Conflict(f"The session id {session!r}", "is taken", "Choose another id.")):
        return Events.of(await memory.add_list(body.read(), session))


@router.get("/{session}/events/{event}", summary="The original of a message")
async def expand_event(
    caller: Reader, session: Name, event: Name, *, owner: Name | None = None, by_index: ByIndex = False
) -> MessageForm:
    """As it was added, compacted, archived or not."""
    memory = _memory(caller, owner)
    with foreign_as(MessageNotFound(event)):
        return message_to_json(await memory.expand(_reference(event, by_index=by_index), session))


@router.patch("/{session}/events/{event}", summary="Edit an event")
async def update_event(
    caller: Writer,
    session: Name,
    event: Name,
    body: EventChanges,
    *,
    owner: Name | None = None,
    by_index: ByIndex = False,
) -> Event:
    """Change content, state or metadata of an event that no summary covers yet."""
    memory = _memory(caller, owner)
    with foreign_as(MessageNotFound(event)):
        return Event.of(await memory.update(_reference(event, by_index=by_index), session, **body.given()))


@router.delete("/{session}/events/{event}", summary="Delete an event")
async def delete_event(
    caller: Writer, session: Name, event: Name, *, owner: Name | None = None, by_index: ByIndex = False
) -> Deleted:
    """For good. A tool call goes with its results, and a result with its call."""
    memory = _memory(caller, owner)
    deleting = memory.delete(_reference(event, by_index=by_index), session)
    return Deleted(deleted=await _of_session(memory, session, deleting, 0))


@router.post("/{session}/events/{event}/restore", summary="Put a message back in full")
async def restore_event(
    caller: Writer, session: Name, event: Name, *, owner: Name | None = None, by_index: ByIndex = False
) -> Event:
    """In the place of the reference; it is not compacted again."""
    memory = _memory(caller, owner)
    with foreign_as(MessageNotFound(event)):
        return Event.of(await memory.restore(session, _reference(event, by_index=by_index)))


@router.get("/{session}/archive", summary="What a summary stands for")
async def archived_events(
    caller: Reader,
    session: Name,
    *,
    owner: Name | None = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    offset: Offset = 0,
) -> Events:
    """The originals of the messages behind the summary, in order."""
    memory = _memory(caller, owner)
    archived = memory.archived(session, limit=limit, offset=offset)
    return Events.of(await _of_session(memory, session, archived, []))


@router.get("/{session}/summaries", summary="The summaries of a session")
async def session_summaries(caller: Reader, session: Name, owner: Name | None = None) -> Summaries:
    """The newest first; each covers what the one before it covered."""
    memory = _memory(caller, owner)
    return Summaries.of(await _of_session(memory, session, memory.get_summaries(session), []))


@router.get("/{session}/context", summary="What to send to a model")
async def session_context(
    caller: Reader, session: Name, *, owner: Name | None = None, max_tokens: MaxTokens = None
) -> Messages:
    """The summary and system messages first, then the live messages; with `max_tokens` the newest that fit."""
    memory = _memory(caller, owner)
    context = memory.get_context(session, max_tokens=max_tokens)
    return Messages.of(await _of_session(memory, session, context, []))


@router.post("/{session}/search", summary="Find messages of a session")
async def search_events(caller: Reader, session: Name, body: Search, owner: Name | None = None) -> Events:
    """The events whose original text holds this one, best first; letter case does not count."""
    memory = _memory(caller, owner)
    found = memory.retrieve(body.text, session, limit=body.limit)
    return Events.of(await _of_session(memory, session, found, []))


@router.post("/{session}/compact", summary="Manage the size of a session")
async def manage_session(caller: Writer, session: Name, owner: Name | None = None) -> Managed:
    """Compact and summarise as its size asks for; nothing, if it is small."""
    memory = _memory(caller, owner)
    await _check_there(memory, session)
    nothing = ContextReport(Tier.NORMAL, 0, 0)
    return Managed.of(await unless_foreign(memory.manage_context(session), nothing))


def _memory(caller: Caller, owner: str | None) -> BaseMemory:
    return caller.kernel.sessions(caller.owner(owner))


async def _of_session(memory: BaseMemory, session: str, call: Awaitable[T], nothing: T) -> T:
    """What the call gives of a session; where that is nothing, it is first made sure that there is such a session.

    Raises:
        Problem: 404, there is none.
    """
    given = await unless_foreign(call, nothing)
    if not given:
        await _check_there(memory, session)
    return given


async def _check_there(memory: BaseMemory, session: str) -> None:
    if not await unless_foreign(memory.has_session(session), missing=False):
        raise _not_found(session)


def _not_found(session: str) -> Problem:
    error = {"field": "session", "problem": "is not here", "id": session}
    detail = f"No session here has the id {session!r}."
    return Problem(404, "not_found", "There is no such thing here", detail, (error,))


def _reference(event: str, *, by_index: bool) -> str | int:
    if not by_index:
        return event
    if not event.isascii() or not event.isdigit() or len(event) > MAX_INDEX_DIGITS:
        raise InvalidInput("event", "is no index", "Give a whole number from 1 on, or leave by_index out.")
    return int(event)

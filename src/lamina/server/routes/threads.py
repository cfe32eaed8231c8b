"""Threads as a resource."""

from __future__ import annotations

import uuid
from typing import Annotated

from fastapi import APIRouter, Query, Response, status

from lamina.domain import thread as domain
from lamina.domain.instants import to_micros
from lamina.domain.message_json import message_to_json
from lamina.domain.storable import MAX_INDEX
from lamina.errors import Conflict, ThreadNotFound
from lamina.server.caller import Caller, Reader, Writer
from lamina.server.foreign import foreign_as
from lamina.server.paging import Page, Paging
from lamina.server.preconditions import OptionalPrecondition, Precondition, set_etag
from lamina.server.routes.segments import SegmentRoute
from lamina.server.wire.messages import MessageForm, NewMessages
from lamina.server.wire.strict import Name
from lamina.server.wire.threads import (
    Compact,
    Compacted,
    Extracted,
    Messages,
    NewThread,
    Thread,
    ThreadChanges,
    ThreadContext,
    ThreadWithMessages,
)

__all__ = ["known_thread", "router"]

router = APIRouter(prefix="/v1/threads", tags=["threads"], route_class=SegmentRoute)

AStatus = Annotated[str, Query(pattern="^(active|archived|all)$")]


@router.post("", status_code=status.HTTP_201_CREATED, summary="Begin a thread")
async def create_thread(caller: Writer, response: Response, body: NewThread) -> Thread:
    """The thread of this id: a new one, or the one that is there, as it is, archived or not."""
    id = f"thread_{uuid.uuid4().hex}" if body.id is None else body.id
    owner = caller.owner(body.owner)
    with foreign_as(Conflict(f"The thread id {id!r}", "is taken", "Choose another id, or leave it out.")):
        made = await caller.kernel.conversation.create(
            id, owner=owner, namespace=body.namespace, metadata=body.metadata
        )
    set_etag(response, made.revision)
    return Thread.of(made)


@router.get("", summary="List threads")
async def list_threads(
    caller: Reader, paging: Paging, *, owner: Name | None = None, status: AStatus = "active"
) -> Page[Thread]:
    """Heads of threads, the newest activity first; `status` is `active`, `archived` or `all`.

    Pages tile: nothing is shown twice. What is begun or used meanwhile comes before the first page.
    """
    rows = await caller.kernel.conversation.list_threads(
        status, owner=caller.owner(owner), limit=paging.limit + 1, after=paging.instant
    )
    return paging.sorted(rows, Thread.of, lambda thread: (to_micros(thread.updated_at), thread.id))


@router.get("/{id}", summary="One thread")
async def get_thread(caller: Reader, response: Response, id: Name, owner: Name | None = None) -> ThreadWithMessages:
    """With its live messages and the summary of the older ones; its `ETag` is its revision."""
    found = await _found(caller, id, owner)
    set_etag(response, found.revision)
    return ThreadWithMessages.of(found)


@router.patch("/{id}", summary="Archive a thread, or bring it back")
async def change_thread(
    caller: Writer,
    precondition: Precondition,
    response: Response,
    *,
    id: Name,
    body: ThreadChanges,
    owner: Name | None = None,
) -> Thread:
    """Change the status of the thread as it was read: `If-Match` is required."""
    found = await _found(caller, id, owner)
    expected = precondition.check(found.revision)
    talk = caller.kernel.conversation
    change = talk.archive if body.status is domain.ThreadStatus.ARCHIVED else talk.unarchive
    with precondition.held(), foreign_as(ThreadNotFound(id)):
        await change(id, owner=caller.owner(owner), expected_revision=expected)
    changed = await _found(caller, id, owner)
    set_etag(response, changed.revision)
    return Thread.of(changed)


@router.delete("/{id}", status_code=status.HTTP_204_NO_CONTENT, summary="Delete a thread")
async def delete_thread(
    caller: Writer, precondition: OptionalPrecondition, id: Name, owner: Name | None = None
) -> None:
    """With all its messages and summaries, for good. `If-Match` is held against the head: no message changes it."""
    found = await _found(caller, id, owner)
    expected = precondition.check(found.revision)
    with precondition.held(), foreign_as(ThreadNotFound(id)):
        gone = await caller.kernel.conversation.delete(id, owner=caller.owner(owner), expected_revision=expected)
    if not gone:
        raise ThreadNotFound(id)


@router.get("/{id}/messages", summary="What was said")
async def list_messages(
    caller: Reader,
    paging: Paging,
    id: Name,
    *,
    owner: Name | None = None,
    after: Annotated[int, Query(ge=0, le=MAX_INDEX, description="Those with a greater index.")] = 0,
) -> Page[MessageForm]:
    """All messages that were ever added, the oldest first, as they were added. Pages tile."""
    whose = caller.owner(owner)
    offset = min(after + paging.number, MAX_INDEX)
    with foreign_as(ThreadNotFound(id)):
        rows = await caller.kernel.conversation.history(id, owner=whose, offset=offset, limit=paging.limit + 1)
    return paging.counted(rows, message_to_json)


@router.post("/{id}/messages", status_code=status.HTTP_201_CREATED, summary="Add messages")
async def add_messages(caller: Writer, id: Name, body: NewMessages, owner: Name | None = None) -> Messages:
    """Add messages at the end, all or none; the thread is made if there is none.

    `format` says how they are written: `openai` is what OpenAI's chat completions take, `lamina` what this server
    gives. Under an id of the client's own, adding a message again changes nothing.
    """
    whose = caller.owner(owner)
    with foreign_as(ThreadNotFound(id)):
        return Messages.of(await caller.kernel.conversation.add_messages(id, body.read(), owner=whose))


@router.get("/{id}/messages/{message}", summary="The original of a message")
async def expand_message(caller: Reader, id: Name, message: Name, owner: Name | None = None) -> MessageForm:
    """The message of this id, else of this index (`12` or `#12`), as it was added, whatever a context shows of it."""
    whose = caller.owner(owner)
    with foreign_as(ThreadNotFound(id)):
        return message_to_json(await caller.kernel.conversation.expand(id, message, owner=whose))


@router.get("/{id}/context", summary="What of a thread goes into a context")
async def thread_context(
    caller: Reader,
    id: Name,
    owner: Name | None = None,
    max_messages: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
) -> ThreadContext:
    """The summary of the older messages, and the live ones in order; empty for an archived thread."""
    await known_thread(caller, id, owner)
    with foreign_as(ThreadNotFound(id)):
        return ThreadContext.of(
            await caller.kernel.conversation.get_thread_context(
                id, owner=caller.owner(owner), max_messages=max_messages
            )
        )


@router.post("/{id}/compact", summary="Fold the older messages")
async def compact_thread(caller: Writer, id: Name, body: Compact, owner: Name | None = None) -> Compacted:
    """Put a summary in the place of what is older than the settings keep; the messages stay in the history."""
    whose = caller.owner(owner)
    with foreign_as(ThreadNotFound(id)):
        return Compacted.of(await caller.kernel.conversation.compact(id, body.force, owner=whose))


@router.post("/{id}/extract", summary="Remember what was said")
async def extract_memories(caller: Writer, id: Name, owner: Name | None = None) -> Extracted:
    """Have the server's model find facts about the user in the thread, and store them as memories."""
    whose = caller.owner(owner)
    with foreign_as(ThreadNotFound(id)):
        return Extracted(ids=await caller.kernel.conversation.extract_memories(id, owner=whose))


async def known_thread(caller: Caller, id: str, owner: str | None) -> None:
    """Refuse a thread that there is not, or is another owner's.

    Raises:
        ThreadNotFound: so it is.
    """
    whose = caller.owner(owner)
    with foreign_as(ThreadNotFound(id)):
        await caller.kernel.conversation.history(id, owner=whose, limit=0)


async def _found(caller: Caller, id: str, owner: str | None) -> domain.Thread:
    whose = caller.owner(owner)
    with foreign_as(ThreadNotFound(id)):
        found = await caller.kernel.conversation.retrieve(id, owner=whose)
    if found is None:
        raise ThreadNotFound(id)
    return found

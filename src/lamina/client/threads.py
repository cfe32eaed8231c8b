"""Threads of a server."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lamina.client.reading import compaction_of, message_of, thread_context_of, thread_of
from lamina.client.resource import Resource, if_match, sendable
from lamina.client.transport import Request
from lamina.conversation.folding import CompactionReport
from lamina.conversation.messages import message_of as read_message
from lamina.conversation.messages import new_message_id, read_calls, read_role
from lamina.domain.message import ContentPart, Message, Role, ToolCall
from lamina.domain.message_json import message_to_json
from lamina.domain.storable import storable_event
from lamina.domain.text import check_name
from lamina.domain.thread import Thread, ThreadContext, ThreadEvent, ThreadStatus
from lamina.domain.validation import check_whole_number
from lamina.errors import InvalidType, ThreadNotFound

__all__ = ["Threads", "sendable_message"]

_ROOT = ("v1", "threads")
_MOST = 2**31 - 1


class Threads(Resource):
    """The verbs of `lamina.ConversationManager`, which says what they mean.

    A thread of another owner is a `ThreadNotFound` here, as one that there is not.
    """

    async def create(
        self,
        id: str | None = None,
        *,
        owner: str | None = None,
        namespace: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Thread:
        """The thread of this id: a new one, or the one that is there, as it is; without an id, a new one.

        Raises:
            Conflict: the id is taken by another owner, or in another namespace.
        """
        id = f"thread_{uuid.uuid4().hex}" if id is None else check_name("id", id)
        body = {"id": id, "owner": self._for(owner), "namespace": namespace, "metadata": metadata}
        return await self._ask(Request(method="POST", path=_ROOT, body=sendable(body)), thread_of)

    async def add_message_to_thread(
        self,
        thread_id: str,
        role: Role | str,
        content: str | list[ContentPart],
        *,
        owner: str | None = None,
        id: str | None = None,
        name: str | None = None,
        tool_calls: Sequence[ToolCall | Mapping[str, Any]] = (),
        tool_call_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Message:
        """Add a message at the end of the thread, which is made if there is none; returns it as it is kept."""
        message = Message(
            role=read_role(role),
            content=content,
            id="" if id is None else check_name("id", id),
            name=name,
            tool_calls=read_calls(tool_calls),
            tool_call_id=tool_call_id,
            metadata=dict(metadata or {}),
            extra=dict(extra or {}),
        )
        return (await self.add_messages(thread_id, [message], owner=owner))[0]

    async def add_messages(
        self, thread_id: str, messages: Iterable[Message | Mapping[str, Any]], *, owner: str | None = None
    ) -> list[Message]:
        """Add messages together, all or none; returns them as they are kept. A mapping is in OpenAI's shape.

        Raises:
            InvalidInput: a message is blank, or a field has a value that cannot be.
            ThreadArchivedError: the thread is archived.
            Conflict: an id names a message that says something else.
        """
        if isinstance(messages, str | Mapping | Message) or not isinstance(messages, Iterable):
            raise InvalidType("messages", "must be a list of messages", "Give a list, even of one message.")
        forms = [sendable_message(read_message(f"messages[{at}]", each)) for at, each in enumerate(messages)]
        if not forms:
            return []
        asked = self._one("POST", thread_id, "messages", owner=owner, body={"format": "lamina", "messages": forms})
        return await self._ask(asked, lambda answer: [message_of(each) for each in answer["data"]])

    async def get_thread_context(
        self, thread_id: str, *, owner: str | None = None, max_messages: int | None = None
    ) -> ThreadContext:
        """What of the thread goes into a context; empty if there is no such thread, or it is archived."""
        try:
            asked = self._one("GET", thread_id, "context", owner=owner, query={"max_messages": max_messages})
            return await self._ask(asked, thread_context_of)
        except ThreadNotFound:
            return ThreadContext(thread_id=thread_id)

    async def list_threads(
        self,
        status: ThreadStatus | str = ThreadStatus.ACTIVE,
        *,
        owner: str | None = None,
        limit: int = 100,
    ) -> list[Thread]:
        """Heads of threads, the newest activity first; `status` is `active`, `archived` or `all`."""
        check_whole_number("limit", limit, 0, _MOST)
        query = {"status": str(status), "owner": self._for(owner)}
        return [each async for each in self._pages(_ROOT, query, thread_of, limit=limit)]

    async def archive(self, id: str, *, owner: str | None = None, expected_revision: int | None = None) -> None:
        """Take the thread out of active context; its data stays. Idempotent.

        Raises:
            ThreadNotFound: there is no such thread.
            Conflict: it has another revision than the expected one.
        """
        await self._set_status(id, ThreadStatus.ARCHIVED, owner, expected_revision)

    async def unarchive(self, id: str, *, owner: str | None = None, expected_revision: int | None = None) -> None:
        """Bring an archived thread back. Idempotent; raises as `archive`."""
        await self._set_status(id, ThreadStatus.ACTIVE, owner, expected_revision)

    async def retrieve(self, id: str, *, owner: str | None = None) -> Thread | None:
        """The thread with its live messages and its current summary, archived or not; None if there is none."""
        try:
            return await self._ask(self._one("GET", id, owner=owner), thread_of)
        except ThreadNotFound:
            return None

    async def history(
        self, id: str, *, owner: str | None = None, offset: int = 0, limit: int | None = None
    ) -> list[Message]:
        """All messages that were ever added, the folded ones too, oldest first, as they were added.

        Raises:
            ThreadNotFound: there is no such thread.
        """
        check_whole_number("offset", offset, 0, _MOST)
        if limit is not None:
            check_whole_number("limit", limit, 0, _MOST)
        path = (*_ROOT, check_name("id", id), "messages")
        query = {"owner": self._for(owner), "after": offset}
        return [each async for each in self._pages(path, query, message_of, limit=limit)]

    async def expand(self, thread_id: str, reference: str | int, *, owner: str | None = None) -> Message:
        """The message of this id, else of this index (`#12`), as it was added.

        Raises:
            ThreadNotFound: there is no such thread.
            MessageNotFound: it has no such message.
        """
        return await self._ask(self._one("GET", thread_id, "messages", str(reference), owner=owner), message_of)

    async def delete(self, id: str, *, owner: str | None = None) -> bool:
        """Delete the thread with all its messages and summaries, for good; False if there is none."""
        try:
            await self._transport.ask(self._one("DELETE", id, owner=owner))
        except ThreadNotFound:
            return False
        return True

    async def compact(self, thread_id: str, force: bool = True, *, owner: str | None = None) -> CompactionReport:
        """Fold everything older than what the server's settings keep; without `force`, if it is due.

        Raises:
            ThreadNotFound: there is no such thread.
        """
        asked = self._one("POST", thread_id, "compact", owner=owner, body={"force": force})
        return await self._ask(asked, compaction_of)

    async def extract_memories(self, thread_id: str, *, owner: str | None = None) -> list[str]:
        """Have the server's model find facts about the user in the thread, and store them; their ids.

        Raises:
            NoModelConfiguredError: the server has no language model.
            ThreadNotFound: there is no such thread.
        """
        asked = self._one("POST", thread_id, "extract", owner=owner)
        return await self._ask(asked, lambda answer: list(answer["ids"]))

    async def _set_status(self, id: str, status: ThreadStatus, owner: str | None, expected: int | None) -> None:
        asked = self._one("PATCH", id, owner=owner, body={"status": status.value}, if_match=if_match(expected))
        await self._transport.ask(asked)

    def _one(
        self, method: str, id: str, *below: str, owner: str | None, query: Mapping[str, Any] | None = None, **more: Any
    ) -> Request:
        path = (*_ROOT, check_name("thread_id", id), *below)
        return Request(method=method, path=path, query={"owner": self._for(owner), **(query or {})}, **more)


def sendable_message(message: Message) -> dict[str, Any]:
    """The message as it can be sent; with an id, so that sending it again adds nothing.

    Raises:
        InvalidInput: a field has a value that cannot be kept. InvalidType: a type.
    """
    given = message.replace(id=message.id or new_message_id(), index=0, role=read_role(message.role))
    return message_to_json(storable_event(ThreadEvent(given)).message)

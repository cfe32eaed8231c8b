"""The conversation manager: threads whose messages are never lost, with a window and a rolling summary."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from lamina.conversation.compaction import originals
from lamina.conversation.expanding import ExpandTool, make_expand_tool
from lamina.conversation.folding import CompactionReport, Folder, ThreadGate, ThreadGates
from lamina.conversation.messages import (
    MessageReader,
    check_same,
    check_settings,
    check_thread_metadata,
    new_message_id,
    read_calls,
    read_role,
)
from lamina.conversation.summarizer import CustomSummarizer, Summarizer
from lamina.conversation.thread_reading import ThreadOriginals, ThreadReader, check_owner, without_reserved
from lamina.conversation.thread_tiers import ThreadTiers
from lamina.conversation.user_facts import extract_facts
from lamina.conversation.window import WindowPolicy
from lamina.domain.memory import DEFAULT_NAME
from lamina.domain.message import ContentPart, Message, Role, ToolCall
from lamina.domain.text import check_name
from lamina.domain.thread import Thread, ThreadContext, ThreadEvent, ThreadRef, ThreadStatus
from lamina.domain.validation import check_whole_number
from lamina.domain.wire_fields import as_mapping
from lamina.errors import ConfigError, Conflict, NoModelConfiguredError, ScopeError
from lamina.memory.engine import MemoryEngine
from lamina.memory.secret_screen import SecretScreen
from lamina.ports.clock import Clock, IdFactory, utc_now
from lamina.ports.events import Emit, Event, EventName
from lamina.ports.language_model import LanguageModel
from lamina.ports.state_store import StateStore
from lamina.ports.token_counter import TokenCounter
from lamina.providers.tokens import EstimateCounter
from lamina.settings.conversation import SummaryConfig
from lamina.settings.tiers import ContextThresholds

__all__ = ["ConversationManager"]

log = logging.getLogger(__name__)

_MOST: Final = 2**31 - 1


class ConversationManager:
    """Keeps the threads of one tenant in a state store.

    A message is durable when the call that adds it returns, and before any model is asked. When more
    messages are live than the policy keeps, the oldest are folded into one rolling summary of
    bounded size; they stay in the store, and `history` reaches them. Whatever the summariser does, no message is
    lost and adding succeeds; `ThreadContext.warnings` tells of its failures.

    Order is by index, never by the clock. Every method takes an `owner`: a thread that has one is refused
    to any other owner. A call without an owner is the host's own, and a thread without one is shared.
    All coroutines may run side by side, in several processes too.
    """

    def __init__(
        self,
        store: StateStore,
        *,
        tenant: str = DEFAULT_NAME,
        llm: LanguageModel | None = None,
        memory: MemoryEngine | None = None,
        policy: WindowPolicy | None = None,
        summarizer: CustomSummarizer | None = None,
        summary: SummaryConfig | None = None,
        context_engineering: ContextThresholds | None = None,
        store_facts: bool = True,
        counter: TokenCounter | None = None,
        clock: Clock = utc_now,
        new_id: IdFactory = new_message_id,
        emit: Emit | None = None,
        secrets: SecretScreen | str = "off",
    ) -> None:
        """`summarizer` takes the place of `llm` for summaries; without both, they are made of extracts.

        Facts about the user that the model finds while it summarises go to `memory`, unless `store_facts` is off.
        `context_engineering` keeps the tokens of each thread inside tiers, after the policy has kept its number.
        `secrets` is the policy about them: `off`, `flag`, `mask` or `refuse`.
        The store, the model and the memory stay the caller's: nothing here closes them.

        Raises:
            ConfigError: the memory engine serves another tenant, or a setting is of another class.
        """
        check_settings(policy=(policy, WindowPolicy), summary=(summary, SummaryConfig), memory=(memory, MemoryEngine))
        check_settings(summarizer=(summarizer, Callable), context_engineering=(context_engineering, ContextThresholds))
        self.tenant = _same_tenant(tenant, memory)
        self._store = store
        self._llm = llm
        self._memory = memory
        self._clock = clock
        self._emit = emit
        self._counter = counter or EstimateCounter()
        self._secrets = SecretScreen.of(secrets, tenant=tenant, clock=clock, emit=emit)
        self._messages = MessageReader(counter=self._counter, clock=clock, new_id=new_id, secrets=self._secrets)
        self._summarizer = Summarizer(summary or SummaryConfig(), self._counter.count, llm, summarizer)
        limits, own = context_engineering, self._counter
        self._tiers = None if limits is None else ThreadTiers(store, limits, counter=own, clock=clock, emit=emit)
        self._reader = ThreadReader(store, self._summarizer, self._counter, context_engineering)
        facts, own_policy = memory if store_facts else None, policy or WindowPolicy()
        self._folder = Folder(store, self._summarizer, policy=own_policy, clock=clock, emit=emit, memory=facts)
        self._gates = ThreadGates()

    async def create(
        self,
        id: str,
        *,
        owner: str | None = None,
        namespace: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Thread:
        """The thread of this id: a new one, or the one that is there, as it is, archived or not.

        Raises:
            ScopeError: the one that is there has another owner or namespace than those given.
            InvalidInput: the id is blank, or a field has a value that cannot be.
        """
        own = self._secrets.metadata("thread", id, check_thread_metadata(metadata or {}))
        now = self._clock()
        wanted = Thread(check_name("id", id), self.tenant, now, now, owner=owner, namespace=namespace, metadata=own)
        kept = await self._store.create_thread(wanted)
        check_owner(kept, owner)
        if namespace is not None and kept.namespace != namespace:
            raise ScopeError(f"The thread {id!r} has another namespace.")
        return without_reserved(kept)

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
        """Add a message at the end of the thread, which is made if there is none; returns it as it is kept.

        With an `id` of the caller's own, adding it again changes nothing.

        Raises:
            InvalidInput: the role is unknown, the message is blank, or a field has a value that cannot be.
            InvalidType: a field has a wrong type.
            ThreadArchivedError: the thread is archived.
            ScopeError: the thread is another owner's.
            Conflict: the id names a message that says something else.
            ThreadNotFound: the thread was deleted while this call was at it.
        """
        message = Message(
            role=read_role(role),
            content=content,
            id="" if id is None else check_name("id", id),
            name=name,
            tool_calls=read_calls(tool_calls),
            tool_call_id=tool_call_id,
            metadata={} if metadata is None else dict(as_mapping("metadata", metadata)),
            extra={} if extra is None else dict(as_mapping("extra", extra)),
        )
        return (await self.add_messages(thread_id, [message], owner=owner))[0]

    async def add_messages(
        self, thread_id: str, messages: Iterable[Message | Mapping[str, Any]], *, owner: str | None = None
    ) -> list[Message]:
        """Add messages together, all or none, with nothing between them; returns them as they are kept.

        A mapping is a message in OpenAI's shape. Otherwise as `add_message_to_thread`.
        """
        events, named = self._messages.read(messages)
        ref = self._ref(thread_id)
        if not events:
            return []
        gate = self._gates.of(ref.id)
        async with gate.appending:  # so that calls of one process are kept in the order in which they were made
            thread, kept = await self._append(ref, events, owner, named=named)
        for given, stored in zip(events, originals(kept), strict=True):
            check_same(stored, given.message)
        gate.is_due |= self._folder.may_be_due(thread, max(event.message.index for event in kept))
        if self._tiers or gate.is_due:
            await self._fold_when_free(ref, gate)
        return originals(kept)

    async def get_thread_context(
        self, thread_id: str, *, owner: str | None = None, max_messages: int | None = None
    ) -> ThreadContext:
        """What of the thread goes into a context: system messages, the summary, and the live messages.

        At most the last `max_messages` live ones, beside the system's; extracts in the summary stand for the
        others, and for a tool's result whose call is not shown. Where a call and its result would be parted,
        more are shown. Empty if there is no such thread, or it is archived.

        Raises:
            ScopeError: the thread is another owner's.
            InvalidInput: `max_messages` is below 1.
        """
        if max_messages is not None:
            check_whole_number("max_messages", max_messages, 1, _MOST)
        return await self._reader.context(self._ref(thread_id), owner, max_messages)

    async def list_threads(
        self,
        status: ThreadStatus | str = ThreadStatus.ACTIVE,
        *,
        owner: str | None = None,
        limit: int = 100,
        offset: int = 0,
        after: tuple[datetime, str] | None = None,
    ) -> list[Thread]:
        """Heads of threads, newest activity first, then by id; with an owner, that owner's alone.

        `status` is `active`, `archived` or `all`. The messages are left out: see `retrieve`. `after` goes on behind
        this `updated_at` and id, so that threads which are made or deleted meanwhile move nothing.
        """
        check_whole_number("limit", limit, 0, _MOST)
        check_whole_number("offset", offset, 0, _MOST)
        if owner is not None:
            check_name("owner", owner)
        return await self._reader.heads(self.tenant, owner, status, limit=limit, offset=offset, after=after)

    async def archive(self, id: str, *, owner: str | None = None, expected_revision: int | None = None) -> None:
        """Take the thread out of active context; its data stays. Idempotent.

        Raises:
            ThreadNotFound: there is no such thread.
            ScopeError: it is another owner's.
            Conflict: it has another revision than the expected one.
        """
        changed = await self._set_status(id, owner, ThreadStatus.ARCHIVED, expected_revision)
        if changed and self._emit is not None:
            self._emit(Event(EventName.THREAD_ARCHIVED, self._clock(), self.tenant, {"thread_id": id}))

    async def unarchive(self, id: str, *, owner: str | None = None, expected_revision: int | None = None) -> None:
        """Bring an archived thread back. Idempotent; raises as `archive`."""
        await self._set_status(id, owner, ThreadStatus.ACTIVE, expected_revision)

    async def retrieve(self, id: str, *, owner: str | None = None) -> Thread | None:
        """The thread with its live messages and its current summary, archived or not; None if there is none.

        Raises:
            ScopeError: it is another owner's.
        """
        return await self._reader.thread(self._ref(id), owner)

    async def history(
        self, id: str, *, owner: str | None = None, offset: int = 0, limit: int | None = None
    ) -> list[Message]:
        """All messages that were ever added, the folded ones too, oldest first, as they were added.

        `offset` leaves out the first so many; at most `limit` of the others, None for all.

        Raises:
            ThreadNotFound: there is no such thread.
            ScopeError: it is another owner's.
        """
        check_whole_number("offset", offset, 0, _MOST)
        if limit is not None:
            check_whole_number("limit", limit, 0, _MOST)
        return await self._reader.history(await self._known(id, owner), offset, limit)

    async def expand(self, thread_id: str, reference: str | int, *, owner: str | None = None) -> Message:
        """The message of this id, else of this index (`#12`), as it was added, whatever the context shows in its place.

        Raises:
            ThreadNotFound: there is no such thread.
            MessageNotFound: it has no such message.
            ScopeError: it is another owner's.
        """
        return await self._reader.original(await self._known(thread_id, owner), reference)

    def expand_tool(self, thread_id: str, *, owner: str | None = None) -> ExpandTool:
        """A tool for an agent that gives the originals of compacted messages of this one thread."""
        return make_expand_tool(ThreadOriginals(self._reader, self.tenant, owner), self._ref(thread_id).id)

    async def delete(self, id: str, *, owner: str | None = None, expected_revision: int | None = None) -> bool:
        """Delete the thread with all its messages and summaries, for good; False if there is none.

        Raises:
            ScopeError: it is another owner's.
            Conflict: its head has another revision than the expected one, or it was begun anew meanwhile; it stays.
        """
        ref = self._ref(id)
        head = await self._reader.find(ref, owner)
        if head is None:
            return False
        made = head.created_at
        if await self._store.delete_thread(ref, expected_revision=expected_revision, expected_created_at=made):
            return True
        if await self._reader.find(ref, owner) is not None:
            raise Conflict(f"The thread {id!r}", "was changed by somebody else")
        return False

    async def compact(self, thread_id: str, force: bool = True, *, owner: str | None = None) -> CompactionReport:
        """Fold everything older than what the policy keeps, whatever its number; without `force`, if it is due.

        Raises:
            ThreadNotFound: there is no such thread.
            ScopeError: it is another owner's.
        """
        thread = await self._known(thread_id, owner)
        gate = self._gates.of(thread.id)
        async with gate.folding:
            report = await self._folder.fold(thread.ref, force=force)
        if gate.again:  # messages came meanwhile, and left the folding to this call
            await self._fold_when_free(thread.ref, gate)
        return report

    async def extract_memories(self, thread_id: str, *, owner: str | None = None) -> list[str]:
        """Have the model find facts about the user in all of the thread, archived or not, and store them; their ids.

        Only the user's own words are read. Facts that are known are confirmed, so that a repeated call does no harm.

        Raises:
            NoModelConfiguredError: there is no language model.
            ConfigError: there is no memory engine.
            ThreadNotFound: there is no such thread.
            ScopeError: it is another owner's.
            ProviderError: the model failed; what was found before stays stored.
        """
        if self._llm is None:
            raise NoModelConfiguredError("extract_memories")
        if self._memory is None:
            raise ConfigError("memory", "is not given, and facts need a place", "Make the manager with memory=….")
        thread = await self._known(thread_id, owner)
        return await extract_facts(self._store, thread, llm=self._llm, memory=self._memory, summarizer=self._summarizer)

    def _ref(self, thread_id: str) -> ThreadRef:
        return ThreadRef(self.tenant, check_name("thread_id", thread_id))

    async def _known(self, id: str, owner: str | None) -> Thread:
        return await self._reader.known(self._ref(id), owner)

    async def _append(
        self, ref: ThreadRef, events: Sequence[ThreadEvent], owner: str | None, *, named: set[str]
    ) -> tuple[Thread, list[ThreadEvent]]:
        """The thread as it was before, or as it was made with these events, and the events as they are kept."""
        thread = await self._reader.find(ref, owner)
        now = self._clock()
        if thread is None:
            new = Thread(ref.id, ref.tenant, now, now, owner=owner)
            begun = await self._store.begin_thread(new, events, now=now)
            if begun is not None:
                return new, begun
            thread = await self._known(ref.id, owner)  # another process has made it meanwhile
        await self._reader.check_ids(ref, events, named)
        return thread, await self._store.append(ref, events, now=now)

    async def _fold_when_free(self, ref: ThreadRef, gate: ThreadGate) -> None:
        """Fold what is due, unless a call of this process is at it: that one then looks once more."""
        if gate.folding.locked():
            gate.again = True
            return
        async with gate.folding:
            gate.again = True
            while gate.again:
                gate.again, is_due, gate.is_due = False, gate.is_due, False
                try:
                    shown = await self._folder.fold_due(ref) if is_due else None
                    if self._tiers is not None and await self._tiers.compact(ref, shown=shown):
                        await self._folder.fold(ref, keep=self._tiers.thresholds.recent_to_keep)
                except Exception as error:  # noqa: BLE001 - the store, or a host's counter or handler of events
                    # The message is stored: saying otherwise would make the caller add it twice.
                    log.warning("folding the thread %s failed: %s", ref.id, type(error).__name__)

    async def _set_status(self, id: str, owner: str | None, status: ThreadStatus, expected: int | None) -> bool:
        thread = await self._known(id, owner)
        now, ref = self._clock(), thread.ref
        if thread.status is status and expected in {None, thread.revision}:
            return False
        if not await self._store.update_thread(ref, now=now, status=status, expected_revision=expected):
            await self._known(id, owner)
            raise Conflict(f"The thread {id!r}", "was changed by somebody else")
        return True


def _same_tenant(tenant: str, memory: MemoryEngine | None) -> str:
    if memory is not None and memory.tenant != tenant:
        problem = f"serves the tenant {memory.tenant!r}, not {tenant!r}"
        raise ConfigError("memory", problem, "Give the engine of that tenant.")
    return check_name("tenant", tenant)

"""The kernel: the composition root, and the way in for intents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from os import PathLike
from typing import Any, Self

from lamina.agents import AgentRegistry
from lamina.context.engine import ContextEngine
from lamina.context.manager import ContextEngineManager
from lamina.context.sources import ProfileProvider
from lamina.conversation.manager import ConversationManager
from lamina.conversation.short_term import BaseMemory
from lamina.domain.intent import Intent, IntentResult
from lamina.errors import NotStarted
from lamina.kernel import quarantining
from lamina.kernel.backups import Backup, Restoration, back_up_store, restore_store
from lamina.kernel.checks import Finding, examine_open
from lamina.kernel.erasing import ErasureReceipt, erase_owner
from lamina.kernel.event_bus import EventBus, Handler
from lamina.kernel.integrity import IntegrityReport, check_integrity
from lamina.kernel.intents import read_intent
from lamina.kernel.maintenance import MaintenanceReport, maintain, read_interval, repeated
from lamina.kernel.model_router import ModelRouter
from lamina.kernel.options import check_options, read_config
from lamina.kernel.parts import Backends, KernelOptions, Parts, build_parts, open_backends, router_of
from lamina.kernel.streaming import streamed
from lamina.kernel.turns import TurnRunner
from lamina.memory.engine import MemoryEngine
from lamina.memory.quarantining import QuarantineReceipt
from lamina.packs.service import ContextPacks
from lamina.ports.clock import Clock, utc_now
from lamina.ports.events import EventName
from lamina.ports.token_counter import TokenCounter
from lamina.providers.tokens import checked_counter
from lamina.rag.pipeline import RagPipeline
from lamina.settings import LaminaConfig

__all__ = ["Kernel"]


@dataclass(frozen=True, slots=True)
class _Open:
    """What there is between `start` and `stop`."""

    backends: Backends
    parts: Parts
    turns: TurnRunner
    closing: AsyncExitStack


class Kernel:
    """Memories, threads, documents, agents and models, put together for one tenant.

    Use it as an async context manager, or call `start` and `stop`. Agents, plug-in engines and event handlers
    may be registered before. Without settings it is ephemeral: everything is in this process's memory, and gone
    with it. Named a place (`data_dir`, `memory={"path": ...}`), or in production, it keeps what it has: one
    SQLite file `lamina.db` by default. Several kernels and processes may share one place. All
    coroutines may run side by side. Nothing runs in the background unless it was asked for.
    """

    def __init__(
        self,
        config: LaminaConfig | Mapping[str, Any] | None = None,
        *,
        model_router: ModelRouter | None = None,
        profile_provider: ProfileProvider | None = None,
        counter: TokenCounter | None = None,
        clock: Clock | None = None,
        **settings: Any,
    ) -> None:
        """From a `LaminaConfig`, or a mapping or keywords of one: `ephemeral`, `data_dir`, `environment`, `memory`, ...

        `model_router` goes before the model and the embedder that the settings name. `profile_provider` tells
        what is known of an owner: role, permissions, policies. `counter` counts tokens; by default as the
        model does, where its vocabulary is known.

        Raises:
            ConfigError: a setting is unknown, wrong, or contradicts another.
            MissingExtra: the model's library is not installed.
            InvalidType: something beside the settings has a type that cannot be taken.
        """
        check_options(model_router, profile_provider, clock)
        self.config = read_config(config, settings)
        self._clock = clock or self.config.memory.clock or utc_now
        self._events = EventBus(debug=self.config.memory.debug)
        self.model_router = router_of(self.config, model_router)
        self.agent_registry = AgentRegistry()
        self.context_engines = ContextEngineManager(
            tenant=self.config.memory.tenant,
            config=self.config.context,
            counter=checked_counter(counter),
            clock=self._clock,
            emit=self._events.emit,
        )
        self._options = KernelOptions(
            clock=self._clock,
            emit=self._events.emit,
            router=self.model_router,
            engines=self.context_engines,
            counter=checked_counter(counter),
            profile_provider=profile_provider,
        )
        self._open: _Open | None = None
        self._changing = asyncio.Lock()

    @classmethod
    def from_config(cls, config: LaminaConfig | Mapping[str, Any], **options: Any) -> Self:
        """The kernel that the settings describe; options are the constructor's."""
        return cls(config, **options)

    async def start(self) -> None:
        """Open everything. Does nothing if it is started.

        Raises:
            ConfigError: a setting cannot be used.
            MissingExtra: a library is not installed.
            AdapterError: a store cannot be opened; nothing is left open.
        """
        async with self._changing:
            if self._open is not None:
                return
            async with AsyncExitStack() as closing:
                backends = await self._backends(closing)
                parts = await build_parts(self.config, self._options, backends, closing)
                turns = TurnRunner(
                    parts=parts,
                    agents=self.agent_registry,
                    router=self.model_router,
                    engines=self.context_engines,
                    limits=self.config.agents,
                    clock=self._clock,
                    emit=self._events.emit,
                )
                closing.push_async_callback(self._events.close)
                closing.push_async_callback(self.context_engines.dispose)
                self._open = _Open(backends, parts, turns, closing.pop_all())

    async def stop(self) -> None:
        """End scheduled maintenance, dispose of plug-in engines, and close what was opened. Idempotent.

        What fails to close does not keep the rest open; the failure is raised when all is done.
        """
        async with self._changing:
            opened, self._open = self._open, None
            if opened is not None:
                await opened.closing.aclose()

    async def __aenter__(self) -> Self:
        """Start it."""
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop it."""
        await self.stop()

    @property
    def is_started(self) -> bool:
        """Whether it is open."""
        return self._open is not None

    @property
    def ephemeral(self) -> bool:
        """Whether everything is gone with the process."""
        return self.config.is_ephemeral

    @property
    def memory_engine(self) -> MemoryEngine:
        """The memories."""
        return self._opened().parts.memory

    @property
    def conversation(self) -> ConversationManager:
        """The threads."""
        return self._opened().parts.conversation

    def sessions(self, owner: str | None = None) -> BaseMemory:
        """Short-term memory over the kernel's store and model: this owner's sessions, or without one all there are.

        It belongs to the kernel, which closes what is below it.
        """
        return self._opened().parts.sessions.of(owner)

    @property
    def rag(self) -> RagPipeline:
        """The documents."""
        return self._opened().parts.rag

    @property
    def packs(self) -> ContextPacks:
        """The context packs."""
        return self._opened().parts.packs

    @property
    def context_engine(self) -> ContextEngine:
        """What computes contexts."""
        return self._opened().parts.context

    def on(self, name: EventName | str, handler: Handler) -> Callable[[], None]:
        """Call the handler, sync or async, for each event of this name from now on; returns what ends that.

        Raises:
            InvalidInput: there is no such event; the message lists those that there are.
        """
        return self._events.on(name, handler)

    async def submit(
        self,
        intent: Intent | Mapping[str, Any] | None = None,
        *,
        goal: str | None = None,
        owner: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        thread_id: str | None = None,
        agent: str | None = None,
        namespace: str | None = None,
    ) -> IntentResult:
        """Serve a goal: compute its context, let an agent answer, keep the exchange in its thread.

        An `Intent`, a mapping with the same fields (camelCase is taken), or keywords. `thread_id`, `agent` and
        `namespace` may also stand in `metadata`. A thread that there is not is made, and belongs to the owner and the
        namespace. With a `namespace`, only its memories are looked up, and auto-save adds to it. What goes wrong
        with the agent, a model or a store is in the result's `error`, and nothing is added to the thread.

        Raises:
            NotStarted: the kernel is not started.
            InvalidInput: a field has a value that cannot be used, or names an agent that there is not.
            InvalidType: a field has the wrong type.
            ScopeError: the thread is another owner's, or of another namespace.
            ThreadArchivedError: the thread is archived.
        """
        read = self._read(
            intent, goal=goal, owner=owner, metadata=metadata, thread_id=thread_id, agent=agent, namespace=namespace
        )
        return await self._opened().turns.run(read)

    async def execute_intent(self, intent: Intent) -> IntentResult:
        """As `submit`, for an intent that is made already."""
        turns = self._opened().turns
        return await turns.run(self._read(intent))

    async def stream(
        self,
        intent: Intent | Mapping[str, Any] | None = None,
        *,
        goal: str | None = None,
        owner: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        thread_id: str | None = None,
        agent: str | None = None,
        namespace: str | None = None,
    ) -> AsyncGenerator[str | IntentResult]:
        """As `submit`, with the answer in pieces as they come, and the result last.

        Whoever stops before the result has been given leaves nothing in the thread. An agent with tools, and one
        whose executor does not stream, gives its answer in one piece.
        """
        turns = self._opened().turns
        read = self._read(
            intent, goal=goal, owner=owner, metadata=metadata, thread_id=thread_id, agent=agent, namespace=namespace
        )
        async with aclosing(streamed(turns, read)) as pieces:
            async for piece in pieces:
                yield piece

    async def diagnose(self) -> list[Finding]:
        """What the checks find in the settings and the stores: `lamina doctor`, from inside. Contacts no model.

        Raises:
            AdapterError: a store failed.
        """
        return await examine_open(self.config, self._opened().parts, self.model_router, clock=self._clock)

    async def erase(self, owner: str) -> ErasureReceipt:
        """Erase everything of an owner, for good: memories, threads, sessions, documents, packs, tokens, kept answers.

        Former versions, vectors, words and what was derived from it too, in the files and their logs. A mark without
        content keeps an import of an older export from bringing it back. The receipt is made by reading anew.

        Raises:
            InvalidInput: no owner can have the name.
            AdapterError: a store failed; what was not done is when it is called again.
        """
        opened = self._opened()
        return await erase_owner(self.config, opened.parts, opened.backends, owner, clock=self._clock)

    async def quarantine(
        self, *, source: str | None = None, prefix: str | None = None, owner: str | None = None
    ) -> QuarantineReceipt:
        """Take all from a source out: as `MemoryEngine.quarantine`, its documents and what was made from them too."""
        return await quarantining.quarantine(self._opened().parts, source, prefix, owner)

    async def quarantined(self, *, owner: str | None = None) -> list[QuarantineReceipt]:
        """What is in quarantine, memories and documents, by the act that put it there, the first first."""
        return await quarantining.list_quarantined(self._opened().parts, owner)

    async def release(self, id: str, *, owner: str | None = None) -> list[str]:
        """Undo a quarantine, as `MemoryEngine.release`; the ids of memories and documents that are found again."""
        return await quarantining.release(self._opened().parts, id, owner)

    async def forget_source(
        self, *, source: str | None = None, prefix: str | None = None, owner: str | None = None, dry_run: bool = False
    ) -> int:
        """Delete what `quarantine` would take out, and return how many it is; `dry_run` only counts."""
        return await quarantining.forget_source(self._opened().parts, source, prefix, owner, dry_run=dry_run)

    async def check_integrity(self, *, repair: bool = False) -> IntegrityReport:
        """Read everything that is kept and compare it; with `repair`, make anew first what the rows tell.

        Text index, blocks and counts of vectors, counts of threads, rows of packs. Nothing that can be read is dropped.

        Raises:
            AdapterError: a store failed, or is too damaged to be read: restore a backup.
        """
        return await check_integrity(self._opened().parts, clock=self._clock, repair=repair)

    async def run_maintenance(self, *, decay: bool = False) -> MaintenanceReport:
        """One pass: purge what has expired, fade memories if `decay` asks for it, clean up, let plug-ins maintain."""
        return await maintain(self._opened().parts, self.context_engines, decay=decay)

    async def backup(self, path: str | PathLike[str], *, force: bool = False) -> Backup:
        """Copy the whole file, all tenants' memories, threads, documents and packs, while others read and write.

        What is written after the beginning is not in it. It was restored into a temporary folder, looked over and
        compared before this returns. With `force` a file at `path` is replaced.

        Raises:
            Unsupported: what is kept is in no SQLite file, or not all in one; it says how to back it up.
            ConfigError: there is no file yet, or one at `path`.
            StoreDamaged: the file is damaged; no backup was made.
        """
        return await back_up_store(self.config, path, force=force)

    async def restore(self, path: str | PathLike[str], *, force: bool = False) -> Restoration:
        """Put a backup where this kernel, which is not started, keeps its file; with `force`, in the former's place.

        The former file is kept beside it, under a name that is returned.

        Raises:
            Unsupported: what is kept is in no SQLite file, or not all in one.
            ConfigError: there is no such backup, or a file and no `force`.
            StoreDamaged: the backup is damaged, foreign, or of a newer Lamina; nothing was changed.
            AdapterUnavailable: the file is in use, by this kernel or anybody else; nothing was changed.
        """
        return await restore_store(self.config, path, force=force)

    @asynccontextmanager
    async def maintenance(self, interval: float | timedelta, *, decay: bool = False) -> AsyncIterator[None]:
        """Inside the block, a pass of `run_maintenance` every `interval` (seconds or a timedelta).

        It ends with the block, or when the kernel is stopped.
        """
        opened = self._opened()

        async def work() -> None:
            await maintain(opened.parts, self.context_engines, decay=decay)

        async with repeated(work, seconds=read_interval(interval)) as task:
            opened.closing.callback(task.cancel)
            yield

    async def _backends(self, closing: AsyncExitStack) -> Backends:
        """What it stands on: opened here, and closed with it."""
        backends = await open_backends(self.config, self.model_router, closing)
        closing.push_async_callback(self.model_router.close)
        return backends

    def _read(self, intent: Intent | Mapping[str, Any] | None, **fields: Any) -> Intent:
        return read_intent(intent, fields, clock=self._clock, default_owner=self.config.memory.default_owner)

    def _opened(self) -> _Open:
        if self._open is None:
            raise NotStarted("The kernel", "Call `await kernel.start()`, or use `async with kernel:`.")
        return self._open

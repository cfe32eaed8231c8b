"""One process that serves many tenants: a kernel for each, over the same open stores, embedder and models."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self

from lamina.context.sources import ProfileProvider
from lamina.domain.scope import Scope
from lamina.domain.text import check_name
from lamina.domain.validation import check_whole_number
from lamina.errors import InvalidInput, InvalidType, NotStarted
from lamina.kernel.kernel import Kernel
from lamina.kernel.maintenance import MaintenanceReport
from lamina.kernel.model_router import ModelRouter
from lamina.kernel.options import check_options, read_config
from lamina.kernel.parts import Backends, open_backends, router_of
from lamina.memory.counting import MemoryCounts, count_memories
from lamina.memory.working import WorkingMemory
from lamina.ports.clock import Clock, utc_now
from lamina.ports.memory_requests import META_TENANT
from lamina.ports.server_store import ServerStore
from lamina.ports.state_store import StateStore
from lamina.ports.token_counter import TokenCounter
from lamina.settings import LaminaConfig
from lamina.telemetry import place_of

__all__ = ["MAX_OPEN", "TenantKernels"]

MAX_OPEN: Final = 1000
"""Kernels that are kept open. Each takes about 16 KB of memory and, over SQLite, 1 ms of work to open."""

_MOST_NOTED: Final = 10_000

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Seat:
    """One tenant's kernel, being opened or open, and how many are using it."""

    tenant: str
    opening: asyncio.Task[Kernel]
    users: int = 0

    @property
    def is_open(self) -> bool:
        return self.opening.done() and not self.opening.cancelled() and self.opening.exception() is None

    @property
    def is_gone(self) -> bool:
        """Whether it could not be opened, or its kernel was stopped by somebody else."""
        return self.opening.done() and not (self.is_open and self.opening.result().is_started)


class TenantKernels:
    """Gives each tenant a kernel of its own, made when it is first asked for.

    Use it as an async context manager, or call `start` and `stop`; all in one event loop. The kernels share the
    stores, the embedder and the models, which are opened once, with the first `start`. Whatever belongs to a tenant
    is in that tenant's kernel alone: event handlers, agents, plug-in engines, working memory, counters. Hooks and
    the profile provider of the settings are the host's, and serve every tenant.

    The least recently used kernels are stopped when there are more than `max_open`, but none that is in use; what
    they had in working memory is there again when they come back.
    """

    def __init__(
        self,
        config: LaminaConfig | Mapping[str, Any] | None = None,
        *,
        model_router: ModelRouter | None = None,
        profile_provider: ProfileProvider | None = None,
        counter: TokenCounter | None = None,
        clock: Clock | None = None,
        prepare: Callable[[Kernel], None] | None = None,
        max_open: int = MAX_OPEN,
        **settings: Any,
    ) -> None:
        """As a `Kernel` is made. The settings' tenant is the only one that reads their `v1_path`.

        `prepare` is called with each kernel before it starts, to register agents, engines and event handlers; again
        when a kernel that was stopped comes back.

        Raises:
            ConfigError: a setting is unknown, wrong, or contradicts another.
            MissingExtra: the model's library is not installed.
            InvalidType: something beside the settings has a type that cannot be taken.
            InvalidInput: `max_open` is below 1.
        """
        check_options(model_router, profile_provider, clock)
        if prepare is not None and not callable(prepare):
            raise InvalidType("prepare", f"cannot be called: {type(prepare).__name__}", "Give a function.")
        self.config = read_config(config, settings)
        self.model_router = router_of(self.config, model_router)
        self._options: Mapping[str, Any] = {
            "model_router": self.model_router,
            "profile_provider": profile_provider,
            "counter": counter,
            "clock": clock,
        }
        self._prepare = prepare
        self._max_open = check_whole_number("max_open", max_open, 1, 2**31)
        self._backends: Backends | None = None
        self._closing = AsyncExitStack()
        self._changing = asyncio.Lock()
        self._seats: OrderedDict[str, _Seat] = OrderedDict()
        self._stopping: dict[str, asyncio.Task[None]] = {}
        self._held: dict[asyncio.Task[Any], dict[str, _Seat]] = {}
        self._working: dict[str, WorkingMemory] = {}
        self._noted: set[str] = set()
        self._clock = clock or self.config.memory.clock or utc_now

    async def start(self) -> None:
        """Open the stores and the embedder. Does nothing if that is done.

        Raises:
            ConfigError: a setting cannot be used.
            MissingExtra: a library is not installed.
            AdapterError: a store cannot be opened; nothing is left open.
        """
        async with self._changing:
            if self._backends is not None:
                return
            async with AsyncExitStack() as closing:
                backends = await open_backends(self.config, self.model_router, closing)
                closing.push_async_callback(backends.server.close)
                await backends.server.initialize()
                closing.push_async_callback(self.model_router.close)
                self._closing = closing.pop_all()
                self._backends = backends

    async def stop(self) -> None:
        """Stop every kernel, in use or not, and close what was opened. Idempotent.

        What fails to stop does not keep the rest open; the failure is raised when all is done.
        """
        async with self._changing:
            if self._backends is None:
                return
            self._backends = None
            async with self._closing:
                seats, self._seats = list(self._seats.values()), OrderedDict()
                for seat in seats:
                    self._closing.push_async_callback(self._stop, seat)
                for stopping in self._stopping.values():
                    self._closing.push_async_callback(asyncio.wait, [stopping])

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
        return self._backends is not None

    @property
    def state(self) -> StateStore:
        """The threads, sessions and heads of documents of all tenants."""
        return self._opened().state

    @property
    def server(self) -> ServerStore:
        """The tokens, the requests, the leases and the names of all tenants, which server processes share."""
        return self._opened().server

    async def of(self, tenant: str) -> Kernel:
        """The tenant's kernel, started; it stays so until the task that calls this ends, at least.

        A task that goes through many tenants has them all open in the end: there use `using`.

        Raises:
            NotStarted: this is not started.
            InvalidInput: no tenant can have the name.
            AdapterError: a store failed.
        """
        seat = self._take(tenant)
        self._hold(seat)
        return await asyncio.shield(seat.opening)

    @asynccontextmanager
    async def using(self, tenant: str) -> AsyncIterator[Kernel]:
        """The tenant's kernel, started; it stays so inside the block, at least. Raises as `of`."""
        seat = self._take(tenant)
        try:
            yield await asyncio.shield(seat.opening)
        finally:
            self._leave(seat)

    async def run_maintenance(self, tenant: str, *, decay: bool = False) -> MaintenanceReport:
        """As `Kernel.run_maintenance`, for one tenant."""
        async with self.using(tenant) as kernel:
            return await kernel.run_maintenance(decay=decay)

    async def tenants(self) -> list[str]:
        """The tenants that this place has ever served, from any process, and those of its tokens; sorted.

        One that only a `Kernel` of its own wrote to is not known here.
        """
        return await self._opened().server.tenants()

    async def count_memories(self) -> MemoryCounts:
        """How many memories all tenants have together: those of `tenants` and the settings' own.

        No kernel is opened for it.

        Raises:
            AdapterError: a store failed.
        """
        backends = self._opened()
        total = MemoryCounts()
        for tenant in sorted({*await backends.server.tenants(), self.config.memory.tenant}):
            total += await count_memories(backends.memory.stores(), Scope(tenant), self._clock())
        return total

    def _opened(self) -> Backends:
        if self._backends is None:
            raise NotStarted(
                "The kernels of the tenants", "Call `await kernels.start()`, or use `async with kernels:`."
            )
        return self._backends

    def _take(self, tenant: str) -> _Seat:
        """The tenant's seat, with one user more."""
        backends = self._opened()
        check_name("tenant", tenant)
        if tenant == META_TENANT:
            raise InvalidInput("tenant", f"{META_TENANT!r} is reserved", "Choose another name.")
        seat = self._seats.get(tenant)
        if seat is None or seat.is_gone:
            opening = asyncio.get_running_loop().create_task(self._open(tenant, backends))
            opening.add_done_callback(_retrieve)
            seat = self._seats[tenant] = _Seat(tenant, opening)
        self._seats.move_to_end(tenant)
        seat.users += 1
        self._evict()
        return seat

    def _leave(self, seat: _Seat) -> None:
        seat.users -= 1
        self._evict()

    def _hold(self, seat: _Seat) -> None:
        """Let the current task be a user, once however often it asks, until it ends."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - this runs in a coroutine
        if task not in self._held:
            self._held[task] = {}
            task.add_done_callback(self._release)
        former = self._held[task].get(seat.tenant)
        self._held[task][seat.tenant] = seat
        if former is not None:
            self._leave(former)

    def _release(self, task: asyncio.Task[Any]) -> None:
        for seat in self._held.pop(task).values():
            self._leave(seat)

    async def _open(self, tenant: str, backends: Backends) -> Kernel:
        stopping = self._stopping.get(tenant)
        if stopping is not None:
            await asyncio.wait([stopping])
        kernel = _TenantKernel(_config_of(self.config, tenant), backends, **self._options)
        if self._prepare is not None:
            self._prepare(kernel)
        await kernel.start()
        working = self._working.pop(tenant, None)
        if working is not None:
            kernel.memory_engine.working = working
        if tenant not in self._noted:
            await backends.server.note_tenant(tenant, now=self._clock())
            if len(self._noted) >= _MOST_NOTED:
                self._noted.clear()  # noting one once more changes nothing
            self._noted.add(tenant)
        return kernel

    def _evict(self) -> None:
        """Stop the least recently used kernels that are too many; those in use may be too many for a while."""
        surplus = len(self._seats) - self._max_open
        if surplus <= 0 or self._backends is None:
            return
        idle = [seat for seat in self._seats.values() if seat.users == 0 and seat.opening.done()]
        for seat in idle[:surplus]:
            del self._seats[seat.tenant]
            if seat.is_open:
                stopping = asyncio.get_running_loop().create_task(self._stop(seat))
                self._stopping[seat.tenant] = stopping
                stopping.add_done_callback(partial(self._stopped, seat.tenant))

    async def _stop(self, seat: _Seat) -> None:
        await asyncio.wait([seat.opening])
        if seat.is_gone:
            return
        kernel = seat.opening.result()
        working = kernel.memory_engine.working
        try:
            await kernel.stop()
        finally:
            self._keep(seat.tenant, working)

    def _keep(self, tenant: str, working: WorkingMemory) -> None:
        """Keep what a stopped kernel had in working memory; what has expired there meanwhile is let go of."""
        if len(self._working) >= self._max_open:
            self._working = {name: each for name, each in self._working.items() if each.size()}
        if working.size():
            self._working[tenant] = working

    def _stopped(self, tenant: str, task: asyncio.Task[None]) -> None:
        del self._stopping[tenant]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("the kernel of a tenant failed to stop: %s", place_of(error))


class _TenantKernel(Kernel):
    """A kernel over backends that are open, and stay open when it is stopped."""

    def __init__(self, config: LaminaConfig, backends: Backends, **options: Any) -> None:
        super().__init__(config, **options)
        self._shared = backends

    async def _backends(self, closing: AsyncExitStack) -> Backends:  # noqa: ARG002 - there is nothing to close
        return self._shared


def _config_of(config: LaminaConfig, tenant: str) -> LaminaConfig:
    """The settings for one tenant. The memories of version 1 are their own tenant's, and nobody else's."""
    changes: dict[str, Any] = {"tenant": tenant}
    if tenant != config.memory.tenant:
        changes["v1_path"] = None
    return config.model_copy(update={"memory": config.memory.model_copy(update=changes)})


def _retrieve(task: asyncio.Task[Kernel]) -> None:
    """Whoever waits for the task is told of its failure; that nobody waits any more is no error of its own."""
    if not task.cancelled():
        task.exception()

"""Tells a host's handlers what has happened."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from lamina.errors import InvalidInput, InvalidType
from lamina.ports.events import Event, EventName
from lamina.telemetry import place_of

__all__ = ["EventBus", "Handler"]

Handler: TypeAlias = Callable[[Event], Awaitable[None] | None]
"""Takes an event; sync or async. What it raises is logged."""

DRAIN_SECONDS: Final = 10.0
"""How long closing waits for async handlers that are still running."""

log = logging.getLogger(__name__)
debug_log = logging.getLogger("lamina.events")


class EventBus:
    """Handlers by name. Events are told in the order in which they happen, at once.

    A sync handler runs inside `emit`; an async one is started there, and may still run when the call that
    caused the event returns. Under `debug` every event is also logged, by the logger `lamina.events`.
    """

    def __init__(self, *, debug: bool = False) -> None:
        self._debug = debug
        self._handlers: dict[EventName, list[Handler]] = {}
        self._running: set[asyncio.Task[None]] = set()

    def on(self, name: EventName | str, handler: Handler) -> Callable[[], None]:
        """Call the handler for each event of this name from now on; returns what ends that.

        Raises:
            InvalidInput: there is no such event.
            InvalidType: the handler cannot be called.
        """
        try:
            wanted = EventName(name)
        except ValueError:
            raise InvalidInput(
                "name", f"there is no event {name!r:.60}", f"Use one of: {', '.join(EventName)}."
            ) from None
        if not callable(handler):
            raise InvalidType("handler", f"cannot be called: {type(handler).__name__}", "Give a function.")
        handlers = self._handlers.setdefault(wanted, [])
        handlers.append(handler)

        def unsubscribe() -> None:
            if handler in handlers:
                handlers.remove(handler)

        return unsubscribe

    def emit(self, event: Event) -> None:
        """Tell the handlers of the event's name; raises nothing."""
        if self._debug:
            facts = {key: value for key, value in event.facts.items() if value is not None}
            debug_log.info("%s tenant=%s %s", event.name, event.tenant, facts)
        for handler in tuple(self._handlers.get(event.name, ())):
            try:
                result: Any = handler(event)
                if inspect.isawaitable(result):
                    self._start(result, event.name)
            except Exception as error:  # noqa: BLE001 - a host's code: what happened has happened, whatever the listener says
                _log_failure(event.name, error)

    async def close(self) -> None:
        """Wait for the async handlers that still run, for at most ten seconds; then cancel them."""
        if not self._running:
            return
        _, late = await asyncio.wait(self._running, timeout=DRAIN_SECONDS)
        for task in late:
            task.cancel()
        if late:
            log.warning("%d event handlers were still running, and were cancelled", len(late))
            await asyncio.wait(late)

    def _start(self, awaitable: Awaitable[None], name: EventName) -> None:
        task = asyncio.get_running_loop().create_task(_guarded(awaitable, name))
        self._running.add(task)
        task.add_done_callback(self._running.discard)


async def _guarded(awaitable: Awaitable[None], name: EventName) -> None:
    try:
        await awaitable
    except Exception as error:  # noqa: BLE001 - a host's code, as in `emit`
        _log_failure(name, error)


def _log_failure(name: EventName, error: Exception) -> None:
    log.error("a handler of %s failed: %s", name, place_of(error))

"""A plug-in engine while it is registered: what it has seen of each session, and whether it can be relied on."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

from lamina.context.plugin import (
    AssembleParams,
    AssembleResult,
    BootstrapParams,
    BootstrapResult,
    ContextEnginePlugin,
    EngineInfo,
    IngestParams,
)
from lamina.context.plugin_calls import EngineFailure, call_engine
from lamina.context.plugin_results import read_assembly, read_bootstrap, read_ingestion
from lamina.domain.message import Message

__all__ = ["RegisteredEngine", "message_identity"]

MAX_SESSIONS: Final = 10_000
"""Sessions that are remembered; one that was long silent is bootstrapped anew beyond that."""

log = logging.getLogger(__name__)


class _Session:
    """What an engine has been told of a session."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.is_ready = False
        self.last_index = 0
        self.seen: set[str] = set()

    def unseen(self, messages: Sequence[Message]) -> list[Message]:
        return [each for each in messages if not self._knows(each)]

    def note(self, message: Message) -> None:
        if message.index:
            self.last_index = max(self.last_index, message.index)
        else:
            self.seen.add(message_identity(message))

    def _knows(self, message: Message) -> bool:
        return message.index <= self.last_index if message.index else message_identity(message) in self.seen


class RegisteredEngine:
    """Calls one engine; what it is given are copies, and what it gives is checked.

    Its methods may be sync or async; a call of one that it need not have, and has not, is passed over.
    """

    def __init__(self, engine: ContextEnginePlugin, info: EngineInfo, *, timeout: float) -> None:
        self.engine = engine
        self.info = info
        self.failure: EngineFailure | None = None
        """Why it is quarantined; None while it is not."""
        self._timeout = timeout
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    async def assemble(self, params: AssembleParams, *, told: Sequence[Message]) -> AssembleResult:
        """The engine's messages; before that it is bootstrapped and told of the messages that are new to it.

        Raises:
            EngineFailure: bootstrapping or assembling failed.
        """
        await self.tell(params.session_id, told)
        given: AssembleResult = await self.call("assemble", lambda: self.engine.assemble(params), read=read_assembly)
        return given

    async def tell(self, session_id: str, messages: Sequence[Message]) -> None:
        """Bootstrap the session if that was not done, and ingest the messages that are new.

        Raises:
            EngineFailure: bootstrapping failed. A failing ingestion is logged; what comes after it waits.
        """
        session = self._session(session_id)
        async with session.lock:
            if not session.is_ready:
                await self._bootstrap(session_id)
                session.is_ready = True
            for message in session.unseen(messages):
                session.note(message)
                given = IngestParams(session_id, copy.deepcopy(message))
                if not await self.try_call("ingest", given, read=read_ingestion):
                    break

    async def try_call(
        self,
        operation: str,
        *arguments: Any,
        read: Callable[[Any], Any],
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> bool:
        """Call an operation that may be missing and may fail; False if it failed, which is logged."""
        method = getattr(self.engine, operation, None)
        if method is None:
            return True
        try:
            await self.call(operation, lambda: method(*arguments), read=read, timeout=timeout)
        except EngineFailure as failure:
            log.warning("%s", failure)
            return False
        return True

    async def call(
        self,
        operation: str,
        call: Callable[[], Any],
        *,
        read: Callable[[Any], Any],
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Any:
        """See `call_engine`."""
        return await call_engine(self.info.id, operation, call, read=read, timeout=timeout or self._timeout)

    async def _bootstrap(self, session_id: str) -> None:
        method = getattr(self.engine, "bootstrap", None)
        if method is None:
            return
        result: BootstrapResult = await self.call(
            "bootstrap", lambda: method(BootstrapParams(session_id)), read=read_bootstrap
        )
        if not result.success:
            raise EngineFailure(self.info.id, "bootstrap", "not successful")

    def _session(self, session_id: str) -> _Session:
        session = self._sessions.setdefault(session_id, _Session())
        self._sessions.move_to_end(session_id)
        if len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return session


def message_identity(message: Message) -> str:
    """What tells a message from others: its id, or a digest of who says what."""
    if message.id:
        return message.id
    calls = [(call.id, call.name, call.arguments) for call in message.tool_calls]
    said = repr((message.role.value, message.text, message.tool_call_id, calls))
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()

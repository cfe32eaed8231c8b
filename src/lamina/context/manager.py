"""The plug-in context engines of a host: which there are, which one serves, and what befalls one that fails."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lamina.context.builtin_engine import BUILTIN_ID, BuiltinEngine
from lamina.context.plugin import (
    AfterTurnParams,
    AssembleParams,
    AssembleResult,
    CompactParams,
    CompactResult,
    ContextEnginePlugin,
    EngineInfo,
    MaintainParams,
)
from lamina.context.plugin_calls import EngineFailure
from lamina.context.plugin_results import read_compaction, read_maintenance
from lamina.context.registered_engine import RegisteredEngine
from lamina.context.request import MAX_BUDGET
from lamina.context.trimming import trim_messages, without_orphans
from lamina.domain.context import ContextWarning, DroppedItem, DropReason, ItemKind
from lamina.domain.memory import DEFAULT_NAME
from lamina.domain.message import Message, Role
from lamina.domain.message_size import message_tokens, messages_tokens
from lamina.domain.text import check_name
from lamina.domain.validation import check_whole_number
from lamina.errors import EngineNotFound, InvalidInput, InvalidType
from lamina.ports.clock import Clock, utc_now
from lamina.ports.events import Emit, Event, EventName
from lamina.ports.token_counter import TokenCounter
from lamina.providers.tokens import checked_counter, token_counter
from lamina.settings.context import ContextConfig

__all__ = ["Assembly", "ContextEngineManager", "EngineListing"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EngineListing:
    """An engine that can be made the default; one that failed is `is_quarantined` until it is registered anew."""

    id: str
    name: str
    is_default: bool
    version: str = "0.0.0"
    is_quarantined: bool = False


@dataclass(slots=True)
class Assembly(AssembleResult):
    """An assembly as the host hands it on: counted anew, cut to the budget, and by which engine it is."""

    engine_id: str = BUILTIN_ID
    over_budget: bool = False
    dropped: list[DroppedItem] = field(default_factory=list)
    warnings: list[ContextWarning] = field(default_factory=list)


class ContextEngineManager:
    """Holds the engines. The default one serves all intents; `default` is the built-in one.

    An engine that fails in `bootstrap`, `assemble` or `compact`, or whose result cannot be used, is quarantined:
    until it is registered anew the built-in one serves, and says so in its warnings.
    """

    def __init__(
        self,
        *,
        tenant: str = DEFAULT_NAME,
        config: ContextConfig | None = None,
        counter: TokenCounter | None = None,
        clock: Clock = utc_now,
        emit: Emit | None = None,
    ) -> None:
        self._tenant = tenant
        self._config = config or ContextConfig()
        self._counter = checked_counter(counter)
        self._clock = clock
        self._emit = emit
        self._engines: dict[str, RegisteredEngine] = {}
        self._replaced: list[RegisteredEngine] = []
        self._default = BUILTIN_ID

    @property
    def uses_builtin(self) -> bool:
        """Whether the built-in engine is the default."""
        return self._default == BUILTIN_ID

    def list_engines(self) -> list[EngineListing]:
        """The built-in one, and the others in the order in which they were registered."""
        builtin = BuiltinEngine.info
        return [
            EngineListing(builtin.id, builtin.name, self.uses_builtin),
            *(
                EngineListing(id, each.info.name, id == self._default, each.info.version, each.failure is not None)
                for id, each in self._engines.items()
            ),
        ]

    def register(self, engine: ContextEnginePlugin, *, replace: bool = False) -> None:
        """Make the engine available; it serves once it is the default.

        Raises:
            InvalidType: it has no `info` with an id, no `assemble` or no `compact`.
            InvalidInput: the id is taken (unless `replace`), or is the built-in engine's.
        """
        info = _read_info(engine)
        if info.id == BUILTIN_ID:
            raise InvalidInput("info.id", f"{BUILTIN_ID!r} is the built-in engine's", "Choose another id.")
        former = self._engines.get(info.id)
        if former is not None:
            if not replace:
                raise InvalidInput("info.id", f"{info.id!r} is taken", "Pass replace=True, or choose another id.")
            if former.engine is not engine:
                self._replaced.append(former)
        self._engines[info.id] = RegisteredEngine(engine, info, timeout=self._config.engine_timeout)

    async def unregister(self, id: str) -> None:
        """Dispose of the engine and forget it; if it was the default, the built-in one serves again.

        Raises:
            EngineNotFound: there is none of this id.
            InvalidInput: the built-in engine cannot be unregistered.
        """
        if id == BUILTIN_ID:
            raise InvalidInput("id", "the built-in engine cannot be unregistered", "Make another one the default.")
        engine = self._registered(id)
        del self._engines[id]
        if self._default == id:
            self._default = BUILTIN_ID
        await self._dispose_of(engine)

    def set_default(self, id: str) -> None:
        """Make the engine serve all intents.

        Raises:
            EngineNotFound: there is none of this id.
        """
        if id != BUILTIN_ID:
            self._registered(id)
        self._default = id

    def get(self, id: str) -> ContextEnginePlugin:
        """The engine.

        Raises:
            EngineNotFound: there is none of this id.
        """
        return self._builtin(None) if id == BUILTIN_ID else self._registered(id).engine

    async def assemble(
        self,
        session_id: str,
        messages: Sequence[Message],
        token_budget: int,
        *,
        prompt: str | None = None,
        goal: str | None = None,
        model: str | None = None,
        counter: TokenCounter | None = None,
    ) -> Assembly:
        """The messages for the agent, by the default engine, within the budget.

        `goal`, if given, is put behind the messages, and is no message of the session yet. A result above the
        budget is cut from its oldest message that is not a system message; the last one is never cut.

        Raises:
            InvalidInput: the session id or the budget cannot be used.
            InvalidType: `messages` is not a list of Message.
        """
        check_name("session_id", session_id)
        check_whole_number("token_budget", token_budget, 0, MAX_BUDGET)
        _check_messages(messages)
        if goal is not None and not isinstance(goal, str):
            raise InvalidType("goal", f"must be text, not {type(goal).__name__}", "Give a str.")
        asked = [*messages, *_goal_message(goal, messages)]
        given = AssembleParams(session_id, asked, token_budget, prompt, model)
        counting = counter or self._counter or token_counter(model)
        engine = self._engines.get(self._default)
        if engine is not None and engine.failure is None:
            try:
                result = await engine.assemble(copy.deepcopy(given), told=messages)
                return self._within_budget(result, engine.info.id, token_budget, counting)
            except EngineFailure as failure:
                self._quarantine(engine, failure)
        params = copy.deepcopy(given)
        result = await self._builtin(counting).assemble(params)
        assembly = self._within_budget(result, BUILTIN_ID, token_budget, counting)
        if engine is not None and engine.failure is not None:
            step, cause = f"engine {engine.info.id}", engine.failure
            assembly.warnings.insert(0, ContextWarning(step, "quarantined", cause.kind, cause.operation))
        kept = {id(each) for each in result.messages}
        cut = [each for each in params.messages if id(each) not in kept]
        assembly.dropped += [_dropped_message(each, counting) for each in cut]
        return assembly

    async def compact(
        self, session_id: str, messages: Sequence[Message], *, token_budget: int | None = None, force: bool = False
    ) -> CompactResult:
        """A summary of the messages by the default engine; by the built-in one if that fails."""
        check_name("session_id", session_id)
        _check_messages(messages)
        if token_budget is not None:
            check_whole_number("token_budget", token_budget, 0, MAX_BUDGET)
        engine = self._engines.get(self._default)
        if engine is not None and engine.failure is None:
            params = CompactParams(session_id, copy.deepcopy(list(messages)), token_budget, force)
            plugin = engine.engine
            try:
                await engine.tell(session_id, messages)
                result: CompactResult = await engine.call(
                    "compact", lambda: plugin.compact(params), read=read_compaction
                )
            except EngineFailure as failure:
                self._quarantine(engine, failure)
            else:
                return result
        params = CompactParams(session_id, list(messages), token_budget, force)
        return await self._builtin(self._counter).compact(params)

    async def after_turn(
        self,
        session_id: str,
        messages: Sequence[Message],
        pre_prompt_message_count: int,
        *,
        token_budget: int | None = None,
    ) -> None:
        """Tell the default engine of a turn that succeeded, with all messages of the session's window.

        Whatever it does wrong is logged; only being cancelled is raised.
        """
        engine = self._engines.get(self._default)
        if engine is None or engine.failure is not None:
            return
        try:
            await engine.tell(session_id, messages)
        except EngineFailure as failure:
            self._quarantine(engine, failure)
            return
        given = AfterTurnParams(session_id, copy.deepcopy(list(messages)), pre_prompt_message_count, token_budget)
        await engine.try_call("after_turn", given, read=_anything)

    async def maintain(self, session_id: str | None = None) -> dict[str, bool]:
        """Let every engine do what it does now and then; for each id, whether it succeeded."""
        await self._dispose_of_replaced()
        return {
            id: await engine.try_call("maintain", MaintainParams(self._clock(), session_id), read=read_maintenance)
            for id, engine in list(self._engines.items())
            if engine.failure is None
        }

    async def dispose(self) -> None:
        """Dispose of all engines and forget them; each gets `dispose_timeout` seconds. Idempotent."""
        await self._dispose_of_replaced()
        while self._engines:
            _, engine = self._engines.popitem()
            await self._dispose_of(engine)
        self._default = BUILTIN_ID

    async def _dispose_of_replaced(self) -> None:
        while self._replaced:
            await self._dispose_of(self._replaced.pop())

    async def _dispose_of(self, engine: RegisteredEngine) -> None:
        await engine.try_call("dispose", read=_anything, timeout=self._config.dispose_timeout)

    def _registered(self, id: object) -> RegisteredEngine:
        if not isinstance(id, str) or id not in self._engines:
            raise EngineNotFound(str(id))
        return self._engines[id]

    def _builtin(self, counter: TokenCounter | None) -> BuiltinEngine:
        return BuiltinEngine(counter or self._counter or token_counter())

    def _within_budget(self, result: AssembleResult, engine_id: str, budget: int, counter: TokenCounter) -> Assembly:
        whole = without_orphans(result.messages)
        kept, cut = trim_messages(whole, budget, counter.count)
        tokens = messages_tokens(kept, counter.count)
        warnings = []
        if cut:
            detail = f"{len(cut)} messages cut to fit {budget} tokens"
            log.warning("The context engine %s gave more than its budget: %s", engine_id, detail)
            warnings.append(ContextWarning(f"engine {engine_id}", "trimmed", detail=detail))
        return Assembly(
            messages=kept,
            estimated_tokens=tokens,
            system_prompt_addition=result.system_prompt_addition,
            engine_id=engine_id,
            over_budget=tokens > budget,
            dropped=[_dropped_message(each, counter) for each in cut],
            warnings=warnings,
        )

    def _quarantine(self, engine: RegisteredEngine, failure: EngineFailure) -> None:
        if engine.failure is not None:
            return
        engine.failure = failure
        log.warning("%s; it is quarantined until it is registered anew", failure)
        if self._emit is not None:
            facts = {"engine": failure.engine, "operation": failure.operation, "error": failure.kind}
            self._emit(Event(EventName.ENGINE_QUARANTINED, self._clock(), self._tenant, facts))


def _read_info(engine: Any) -> EngineInfo:
    """What the engine's `info` says, an object or a mapping; only its id must be there."""
    info = getattr(engine, "info", None)
    given = info if isinstance(info, Mapping) else {name: getattr(info, name, None) for name in EngineInfo.__slots__}
    id = given.get("id")
    if not isinstance(id, str) or not id.strip():
        raise InvalidType("info", "has no id", "Give the engine info = EngineInfo(id=..., name=...).")
    for name in ("assemble", "compact"):
        if not callable(getattr(engine, name, None)):
            raise InvalidType(name, "is missing from the engine", f"Give it a method {name}.")
    check_name("info.id", id)
    name, version = given.get("name") or id, given.get("version") or "0.0.0"
    return EngineInfo(id, str(name), str(version), bool(given.get("owns_compaction")))


def _check_messages(messages: object) -> None:
    if isinstance(messages, str) or not isinstance(messages, Sequence):
        raise InvalidType("messages", f"must be a list, not {type(messages).__name__}", "Give a list of Message.")
    for message in messages:
        if not isinstance(message, Message):
            raise InvalidType("messages", f"hold a {type(message).__name__}", "Give Message objects.")


def _goal_message(goal: str | None, messages: Sequence[Message]) -> list[Message]:
    if goal is None or not goal.strip():
        return []
    last = messages[-1] if messages else None
    if last is not None and last.role is Role.USER and last.text.strip() == goal.strip():
        return []
    return [Message.user(goal)]


def _dropped_message(message: Message, counter: TokenCounter) -> DroppedItem:
    return DroppedItem(ItemKind.MESSAGE, message.id, message_tokens(message, counter.count), DropReason.BUDGET)


def _anything(_: object) -> None:
    """What `after_turn` and `dispose` give is not looked at."""

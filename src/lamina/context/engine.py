"""The context engine: an intent goes in, and what reaches the agent comes out, inside a budget, explained."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from typing import Any

from lamina.context.builtin_engine import BUILTIN_ID
from lamina.context.composing import Composer
from lamina.context.gathering import Found, Gatherer, Sources
from lamina.context.manager import ContextEngineManager
from lamina.context.plugin_serving import contribution_of
from lamina.context.request import ContextRequest, read_request, session_of
from lamina.context.sources import ConversationSource, DocumentSource, PackSource, ProfileProvider
from lamina.domain.context import ComputedContext, ContextWarning, DropReason
from lamina.domain.memory import Vector
from lamina.errors import LaminaError
from lamina.memory.engine import MemoryEngine
from lamina.ports.clock import Clock, utc_now
from lamina.ports.events import Emit, Event, EventName
from lamina.ports.token_counter import TokenCounter
from lamina.prompts import render
from lamina.providers.tokens import checked_counter, token_counter
from lamina.settings.context import ContextConfig
from lamina.telemetry import tell_of_context

__all__ = ["ContextEngine"]

log = logging.getLogger(__name__)


class ContextEngine:
    """Computes contexts from a memory engine and, where given, threads, documents, packs and a host's profiles.

    Nothing that it computes is stored. `counter` counts the tokens; without one, each call counts as its `model`
    does, or by estimate. `engines` are the plug-in engines that may serve in its place.
    """

    def __init__(
        self,
        memory: MemoryEngine,
        *,
        conversation: ConversationSource | None = None,
        rag: DocumentSource | None = None,
        packs: PackSource | None = None,
        profile_provider: ProfileProvider | None = None,
        engines: ContextEngineManager | None = None,
        config: ContextConfig | None = None,
        counter: TokenCounter | None = None,
        clock: Clock = utc_now,
        emit: Emit | None = None,
    ) -> None:
        self._sources = Sources(memory, conversation, rag, packs, profile_provider)
        self._engines = engines
        self._config = config or ContextConfig()
        self._counter = checked_counter(counter)
        self._clock = clock
        self._emit = emit

    async def compute(self, intent: Mapping[str, Any] | None = None, /, **fields: Any) -> ComputedContext:
        """What the agent is to see for this intent; keywords, or one mapping whose keys may be camelCase.

        Args:
            intent: the fields below, as a mapping.
            **fields: `intent_id`, `goal` and `owner_id` must be given. `thread_id` names the conversation that the
                goal belongs to; `namespace` narrows memories. `token_budget` takes the place of the configured
                one; `model` chooses the counter if the engine has none. `system` are the instructions that are
                sent with the context, `tools` the schemas of the tools (mappings), `reserved_tokens` whatever
                else is sent: all three are charged first. `form` fits one shape (`plain`, `openai`, `anthropic`)
                exactly; without it the largest of them fits. `touch=False` counts no accesses: for a look
                at what would be sent.

        Raises:
            InvalidInput: a field is missing, unknown, or has a value that cannot be used.
            InvalidType: a field has the wrong type.
            ScopeError: the thread belongs to another owner.
        """
        request = read_request(intent, fields)
        counter = self._counter or token_counter(request.model)
        composer = Composer(
            request=request,
            config=self._config,
            counter=counter,
            count=cache(counter.count),
            now=self._clock(),
            notice=render("context_notice"),
        )
        context: ComputedContext | None = None
        warnings: list[ContextWarning] = []
        if self._engines is not None and not self._engines.uses_builtin:
            context, warnings = await self._served_by_plugin(self._engines, request, composer)
        if context is None:
            found = await self._gatherer(request).gather()
            found.warnings[:0] = warnings
            context = composer.compose(found, vectors=await self._vectors(composer, found))
        self._tell(context)
        return context

    def _gatherer(self, request: ContextRequest) -> Gatherer:
        return Gatherer(self._sources, self._config, request)

    async def _served_by_plugin(
        self, engines: ContextEngineManager, request: ContextRequest, composer: Composer
    ) -> tuple[ComputedContext | None, list[ContextWarning]]:
        """The context with the plug-in's messages; or None, and why the built-in engine has to serve."""
        found = await self._gatherer(request).gather(shared_only=True)
        messages = found.conversation.messages if found.conversation is not None else []
        without_thread = Found(
            profile=found.profile, preferences=found.preferences, memories=found.memories, warnings=found.warnings
        )
        assembly = await engines.assemble(
            session_of(request.thread_id, owner=request.owner_id, intent_id=request.intent_id),
            messages,
            max(0, composer.room_left(without_thread)),
            prompt=request.goal,
            goal=request.goal,
            model=request.model,
            counter=composer.counter,
        )
        if assembly.engine_id == BUILTIN_ID:
            return None, assembly.warnings
        found.warnings.extend(assembly.warnings)
        context = composer.compose_with_engine(found, contribution_of(assembly, messages, request.goal))
        return context.replace(dropped=[*context.dropped, *assembly.dropped]), []

    async def _vectors(self, composer: Composer, found: Found) -> dict[str, Vector]:
        """Embeddings of what was found, if texts are to be compared by them; a failure is a warning."""
        embedder = self._sources.memory.embedder
        if self._config.near_duplicate_cosine is None or embedder is None:
            return {}
        candidates = composer.candidates(found)
        try:
            vectors = await embedder.embed_documents([each.content for each in candidates])
        except LaminaError as error:
            found.warnings.append(ContextWarning("near_duplicates", "failed", error=type(error).__name__))
            return {}
        pairs = zip(candidates, vectors, strict=True)
        return {each.id: vector for each, vector in pairs}

    def _tell(self, context: ComputedContext) -> None:
        for warning in context.warnings:
            if warning.code == "over_budget":
                log.warning("The context of %s is over budget: %s", context.intent_id, warning.detail)
        facts: dict[str, Any] = {
            "intent_id": context.intent_id,
            "tokens": context.estimated_tokens,
            "token_budget": context.token_budget,
            "over_budget": context.over_budget,
            "memories": len(context.memories),
            "documents": len(context.documents),
            "dropped": len(context.dropped),
            "warnings": len(context.warnings),
        }
        self._say(EventName.CONTEXT_COMPUTED, facts)
        tell_of_context(included=context.estimated_tokens, dropped=sum(each.tokens for each in context.dropped))
        trimmed = [each for each in context.dropped if each.reason in {DropReason.BUDGET, DropReason.TOO_LARGE}]
        if trimmed:
            tokens = sum(each.tokens for each in trimmed)
            self._say(
                EventName.CONTEXT_TRIMMED, {"intent_id": context.intent_id, "items": len(trimmed), "tokens": tokens}
            )

    def _say(self, name: EventName, facts: Mapping[str, Any]) -> None:
        if self._emit is not None:
            self._emit(Event(name, self._clock(), self._sources.memory.tenant, facts))

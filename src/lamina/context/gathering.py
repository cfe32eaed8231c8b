"""Looks everything up that may go into a context: all steps side by side, none able to spoil another."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from lamina.context.profile import PREFERENCE_TAGS, ask_profile, usable_preferences
from lamina.context.request import ContextRequest
from lamina.context.sources import ConversationSource, DocumentSource, PackSource, ProfileProvider
from lamina.domain.context import ENTRY_ID, ContextWarning, PackHit, UserProfile
from lamina.domain.document import Document, RagChunk
from lamina.domain.memory import SHARED_LAYERS, Layer, MemoryEntry
from lamina.domain.recall import RecallResult
from lamina.domain.thread import ThreadContext
from lamina.errors import InvalidType, ScopeError
from lamina.memory.engine import MemoryEngine
from lamina.settings.context import ContextConfig

__all__ = ["Found", "Gatherer", "Sources"]

_LISTED: Final = frozenset({Layer.WORKING, Layer.SESSION})
"""Layers of which everything recent matters, whatever the goal is."""

_MOST_TURNS: Final = 10
"""So many pages of preferences are looked through for those that may be used."""

log = logging.getLogger(__name__)

T = TypeVar("T")
Step = Callable[[], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a context comes from; what is None adds nothing."""

    memory: MemoryEngine
    conversation: ConversationSource | None = None
    documents: DocumentSource | None = None
    packs: PackSource | None = None
    profile: ProfileProvider | None = None


@dataclass(slots=True)
class Found:
    """What the steps brought; `memories` in the order of the layers."""

    profile: UserProfile = field(default_factory=UserProfile)
    preferences: list[MemoryEntry] = field(default_factory=list)
    memories: list[MemoryEntry | RecallResult] = field(default_factory=list)
    documents: Sequence[RagChunk] = ()
    packs: Sequence[PackHit] = ()
    conversation: ThreadContext | None = None
    warnings: list[ContextWarning] = field(default_factory=list)


class Gatherer:
    """Runs the steps of one request."""

    def __init__(self, sources: Sources, config: ContextConfig, request: ContextRequest) -> None:
        self._sources = sources
        self._config = config
        self._request = request

    async def gather(self, *, shared_only: bool = False) -> Found:
        """Everything, or without what a plug-in engine brings itself: the personal layers, documents and packs.

        Raises:
            ScopeError: the thread belongs to another owner.
        """
        steps = self._steps(shared_only=shared_only)
        outcomes = await asyncio.gather(*(self._outcome(name, step) for name, step in steps.items()))
        for value, _ in outcomes:
            if isinstance(value, ScopeError):  # raised when no step is under way any more
                raise value
        found = Found()
        values: dict[str, Any] = {}
        for name, (value, warning) in zip(steps, outcomes, strict=True):
            if warning is not None:
                found.warnings.append(warning)
                continue
            values[name] = value
            for degraded in getattr(value, "degraded", ()):
                detail = f"{degraded.leg.value}: {degraded.reason.value}"
                found.warnings.append(ContextWarning(name, "degraded", detail=detail))
        found.memories = [each for layer in Layer for each in values.get(layer.value, ())]
        found.profile = values.get("profile") or UserProfile()
        found.preferences = usable_preferences(values.get("preferences", ()))
        found.documents = values.get("documents", ())
        found.packs = values.get("packs", ())
        found.conversation = values.get("conversation")
        if found.conversation is not None:
            told = (ContextWarning("conversation", "told", detail=each) for each in found.conversation.warnings)
            found.warnings.extend(told)
        return found

    async def _outcome(self, name: str, step: Step) -> tuple[Any, ContextWarning | None]:
        try:
            async with asyncio.timeout(self._config.step_timeout):
                return await step(), None
        except ScopeError as error:
            return error, None
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return None, _failed(name, error)
        except Exception as error:  # noqa: BLE001 - a step is a host's or a backend's code: the intent goes on without it
            return None, _failed(name, error)

    def _steps(self, *, shared_only: bool) -> dict[str, Step]:
        """The steps that this request calls for, by name, in the order in which warnings are given."""
        sources, config, request = self._sources, self._config, self._request
        steps: dict[str, Step] = {}
        if sources.profile is not None:
            provider = sources.profile
            steps["profile"] = lambda: ask_profile(provider, request.owner_id)
        if config.auto_recall:
            if config.preference_limit:
                steps["preferences"] = self._preferences
            for layer, limit in self._limits().items():
                wanted = limit and (layer in _LISTED or request.searches)
                if wanted and not (shared_only and layer not in SHARED_LAYERS):
                    steps[layer.value] = self._memories(layer, limit)
        documents, packs, conversation = sources.documents, sources.packs, sources.conversation
        if documents is not None and config.document_limit and request.searches and not shared_only:
            steps["documents"] = lambda: self._documents(documents)
        wants_packs = config.use_packs and config.pack_limit and request.searches
        if packs is not None and wants_packs and not shared_only:
            steps["packs"] = lambda: self._packs(packs)
        thread_id = request.thread_id
        if conversation is not None and thread_id is not None:
            steps["conversation"] = lambda: self._thread(conversation, thread_id)
        return steps

    def _limits(self) -> Mapping[Layer, int]:
        config = self._config
        return {
            Layer.WORKING: config.working_limit,
            Layer.SESSION: config.session_limit,
            Layer.LONGTERM: config.longterm_limit,
            Layer.ORGANIZATIONAL: config.organizational_limit,
            Layer.GLOBAL: config.global_limit,
        }

    def _memories(self, layer: Layer, limit: int) -> Step:
        memory, request = self._sources.memory, self._request
        owner, namespace = request.owner_id, request.namespace
        if layer in _LISTED:
            return lambda: memory.query(None, layers=[layer], owner=owner, namespace=namespace, limit=limit)
        return lambda: memory.recall(
            request.goal,
            layers=[layer],
            owner=owner,
            namespace=namespace,
            limit=limit,
            min_score=self._config.min_score,
            min_match=self._config.min_match,
            touch=request.touch,
        )

    async def _preferences(self) -> Sequence[MemoryEntry]:
        """As many usable ones as are wanted: others that lie before them do not take their places."""
        wanted, usable = self._config.preference_limit, list[MemoryEntry]()
        for turn in range(_MOST_TURNS):
            page = await self._sources.memory.query(
                None,
                layers=[Layer.LONGTERM],
                owner=self._request.owner_id,
                namespace=self._request.namespace,
                tags_any=PREFERENCE_TAGS,
                limit=wanted,
                offset=turn * wanted,
            )
            usable += usable_preferences(page)
            if len(page) < wanted or len(usable) >= wanted:
                break
        return usable[:wanted]

    async def _documents(self, source: DocumentSource) -> list[RagChunk]:
        found = await source.retrieve(
            self._request.goal,
            top_k=self._config.document_limit,
            owner=self._request.owner_id,
            min_score=self._config.document_min_score,
            neighbors=self._config.document_neighbors,
        )
        return _all_of(RagChunk, found, "documents")

    async def _packs(self, source: PackSource) -> list[PackHit]:
        found = await source.find(
            self._request.goal,
            owner=self._request.owner_id,
            max_packs=self._config.max_packs,
            min_score=self._config.pack_min_score,
            per_pack=self._config.pack_limit,
            touch=self._request.touch,
        )
        hits = _all_of(PackHit, found, "packs")
        hits[:] = [hit for hit in hits if not await self._is_away(hit)]
        return hits

    async def _is_away(self, hit: PackHit) -> bool:
        """Whether it was made from a memory, or a document (`document_id`), that is in quarantine."""
        document, look = hit.metadata.get("document_id"), getattr(self._sources.documents, "get", None)
        if look is not None and isinstance(document, str) and document:
            head = await look(document)
            if isinstance(head, Document) and head.is_quarantined:
                return True
        origin = hit.metadata.get(ENTRY_ID)
        entry = await self._sources.memory.get(origin) if isinstance(origin, str) and origin else None
        return entry is not None and entry.is_quarantined

    async def _thread(self, source: ConversationSource, thread_id: str) -> ThreadContext:
        found = await source.get_thread_context(
            thread_id, owner=self._request.owner_id, max_messages=self._config.context_messages
        )
        if not isinstance(found, ThreadContext):
            problem = f"must give a ThreadContext, not {type(found).__name__}"
            raise InvalidType("conversation", problem, "Return what the protocol says.")
        return found


def _all_of(kind: type[T], found: object, name: str) -> list[T]:
    if not isinstance(found, list) or not all(isinstance(each, kind) for each in found):
        raise InvalidType(name, f"must give a list of {kind.__name__}", "Return what the protocol says.")
    return found


def _failed(name: str, error: BaseException) -> ContextWarning:
    kind = type(error).__name__
    log.warning("The step %s of a context failed with %s; it contributes nothing", name, kind)
    return ContextWarning(name, "failed", error=kind)

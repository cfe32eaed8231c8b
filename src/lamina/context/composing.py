"""From what was found to what is sent: joined, fitted into the budget, and accounted for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from lamina.context.budget import fits_alone, keep_count, settle
from lamina.context.candidates import (
    Candidate,
    chunk_candidates,
    memory_candidates,
    pack_candidates,
    preference_candidates,
)
from lamina.context.gathering import Found
from lamina.context.joining import Joiner
from lamina.context.profile import preferences_of
from lamina.context.request import ContextRequest, tools_tokens
from lamina.domain.context import (
    ComputedContext,
    ContextWarning,
    DroppedItem,
    DropReason,
    EngineContribution,
    ItemKind,
    PackHit,
    UserContext,
)
from lamina.domain.context_block import block_text
from lamina.domain.context_form import Form, TokenSource
from lamina.domain.context_rendering import rendered_size, rendered_tokens
from lamina.domain.document import RagChunk
from lamina.domain.memory import SHARED_LAYERS, MemoryEntry, Vector
from lamina.domain.message import Message
from lamina.domain.message_size import MESSAGE_OVERHEAD, Count
from lamina.ports.token_counter import TokenCounter
from lamina.settings.context import ContextConfig

__all__ = ["Composer"]

_MEASURED: Final = (Form.OPENAI, Form.ANTHROPIC, Form.PLAIN)


@dataclass(frozen=True, slots=True)
class Composer:
    """Puts one context together; pure but for the values it is given."""

    request: ContextRequest
    config: ContextConfig
    counter: TokenCounter
    now: datetime
    notice: str
    count: Count
    """The counter's, remembering what it has counted."""

    @property
    def budget(self) -> int:
        """The call's, or the configured one."""
        return self.request.token_budget if self.request.token_budget is not None else self.config.token_budget

    def compose(
        self,
        found: Found,
        *,
        vectors: Mapping[str, Vector] | None = None,
        engine: EngineContribution | None = None,
    ) -> ComputedContext:
        """The context of what was found, with `engine`'s contribution if a plug-in served the intent."""
        bare = self._bare(found, engine)
        kept, dropped = self._joined(found, vectors, bare)
        context, over_room = self._fitted(bare, kept)
        return self._accounted(context.replace(dropped=[*dropped, *over_room]))

    def compose_with_engine(self, found: Found, engine: EngineContribution) -> ComputedContext:
        """The context with a plug-in's contribution; what it retrieved is cut from its head until all fits."""
        retrieved = engine.retrieved

        def with_last(some: int) -> ComputedContext:
            return self.compose(found, engine=replace(engine, retrieved=retrieved[len(retrieved) - some :]))

        kept = keep_count(len(retrieved), self.budget, lambda some: with_last(some).estimated_tokens)
        context = with_last(kept)
        if kept == len(retrieved):
            return context
        cut = retrieved[: len(retrieved) - kept]
        dropped = [
            DroppedItem(ItemKind.MESSAGE, "", self.count(text), DropReason.BUDGET, source=engine.engine_id)
            for text in cut
        ]
        return context.replace(dropped=[*context.dropped, *dropped])

    def candidates(self, found: Found) -> list[Candidate]:
        """Everything that may be dropped, what is dropped last first."""
        return [
            *preference_candidates(found.preferences),
            *memory_candidates(found.memories),
            *pack_candidates(found.packs),
            *chunk_candidates(found.documents),
        ]

    def room_left(self, found: Found) -> int:
        """Tokens of the budget that the fixed parts and what `found` holds leave; negative if they exceed it."""
        context = self.compose(found)
        return self.budget - context.estimated_tokens

    def _bare(self, found: Found, engine: EngineContribution | None) -> ComputedContext:
        """The parts that are never dropped."""
        return ComputedContext(
            intent_id=self.request.intent_id,
            goal=self.request.goal,
            user=UserContext(self.request.owner_id, found.profile.role),
            computed_at=self.now,
            token_budget=self.budget,
            thread_id=self.request.thread_id,
            permissions=found.profile.permissions,
            policies=found.profile.policies,
            conversation=found.conversation,
            instructions=self.request.system,
            notice=self.notice,
            engine=engine,
            counter=self.counter.name,
            form=None if self.request.form is None else Form(self.request.form),
            warnings=list(found.warnings),
        )

    def _joined(
        self, found: Found, vectors: Mapping[str, Vector] | None, bare: ComputedContext
    ) -> tuple[list[Candidate], list[DroppedItem]]:
        joiner = Joiner(
            now=self.now,
            count=self.count,
            near=self.config.near_duplicate,
            near_cosine=self.config.near_duplicate_cosine,
            vectors=vectors,
        )
        return joiner.join(self.candidates(found), _shown_messages(bare))

    def _fitted(self, bare: ComputedContext, candidates: list[Candidate]) -> tuple[ComputedContext, list[DroppedItem]]:
        room = self.budget - self._size(bare)
        if room <= 0 or not candidates:
            return bare, [each.dropped(DropReason.BUDGET, self.count(each.piece)) for each in candidates]
        sizes = [self.count(each.piece) for each in candidates]
        possible, too_large = fits_alone(candidates, sizes, room)
        kept = self._keep(bare, possible, room)
        while possible and not kept:  # the first is smaller than the room, but not with the marks around it
            first = possible.pop(0)
            too_large.append((first, self.count(first.piece)))
            kept = self._keep(bare, possible, room)
        dropped = [each.dropped(DropReason.TOO_LARGE, size) for each, size in too_large]
        dropped += [each.dropped(DropReason.BUDGET, self.count(each.piece)) for each in possible[kept:]]
        return _with(bare, possible[:kept]), dropped

    def _keep(self, bare: ComputedContext, candidates: list[Candidate], room: int) -> int:
        """How many fit: found by what the block of data grows by, and settled by what is really sent."""
        start = block_text(bare)
        frame = -self.count(start) if start else self.count(self.notice) + MESSAGE_OVERHEAD

        def growth(some: int) -> int:
            return frame + self.count(block_text(_with(bare, candidates[:some])))

        def fits(some: int) -> bool:
            return self._size(_with(bare, candidates[:some])) <= self.budget

        return settle(keep_count(len(candidates), room, growth), len(candidates), fits)

    def _size(self, context: ComputedContext) -> int:
        rendered = max(rendered_size(context, form, self.count) for form in _forms(context))
        return rendered + self._beside()

    def _beside(self) -> int:
        """Tokens of what is sent beside the rendered context."""
        return tools_tokens(self.request.tools, self.count) + self.request.reserved_tokens

    def _accounted(self, context: ComputedContext) -> ComputedContext:
        count = self.count
        largest = max(_forms(context), key=lambda form: rendered_size(context, form, count))
        spent = rendered_tokens(context, largest, count)
        spent[TokenSource.TOOLS] = tools_tokens(self.request.tools, count)
        spent[TokenSource.RESERVED] = self.request.reserved_tokens
        estimated = sum(spent.values())
        over = estimated > self.budget
        warnings = list(context.warnings)
        if over:
            detail = f"{estimated} tokens that may not be dropped, and the budget is {self.budget}"
            warnings.append(ContextWarning("budget", "over_budget", detail=detail))
        return context.replace(estimated_tokens=estimated, tokens_by_source=spent, over_budget=over, warnings=warnings)


def _forms(context: ComputedContext) -> Sequence[Form]:
    """Those in which it has to fit: the one that was asked for, else all."""
    return _MEASURED if context.form is None else (context.form,)


def _with(bare: ComputedContext, kept: Sequence[Candidate]) -> ComputedContext:
    """The context with these items."""
    by_kind: dict[ItemKind, list[Candidate]] = {kind: [] for kind in ItemKind}
    for candidate in kept:
        by_kind[candidate.kind].append(candidate)
    preferences = [each.value for each in by_kind[ItemKind.PREFERENCE] if isinstance(each.value, MemoryEntry)]
    memories = [each.value for each in by_kind[ItemKind.MEMORY] if isinstance(each.value, MemoryEntry)]
    return bare.replace(
        user=UserContext(bare.user.user_id, bare.user.role, preferences_of(preferences)),
        memories=memories,
        knowledge=[entry for entry in memories if entry.layer in SHARED_LAYERS],
        packs=[each.value for each in by_kind[ItemKind.PACK] if isinstance(each.value, PackHit)],
        documents=[each.value for each in by_kind[ItemKind.CHUNK] if isinstance(each.value, RagChunk)],
    )


def _shown_messages(context: ComputedContext) -> Sequence[Message]:
    if context.engine is not None and context.engine.replaces_conversation:
        return context.engine.messages
    return context.conversation.messages if context.conversation is not None else []

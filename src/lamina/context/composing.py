"""From what was found to what is sent: joined, fitted into the budget, and accounted for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate
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
from lamina.domain.context_block import ItemText, block_text, data_block
from lamina.domain.context_form import Form, TokenSource
from lamina.domain.context_rendering import RenderedSizes
from lamina.domain.document import RagChunk
from lamina.domain.memory import SHARED_LAYERS, MemoryEntry, Vector
from lamina.domain.message import Message
from lamina.domain.message_size import Count
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
        measure = _Measure(bare, self.count, beside=self._beside())
        context, over_room = self._fitted(measure, kept)
        return self._accounted(measure, context.replace(dropped=[*dropped, *over_room]))

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

    def _fitted(self, measure: _Measure, candidates: list[Candidate]) -> tuple[ComputedContext, list[DroppedItem]]:
        bare = measure.bare
        room = self.budget - measure.size(bare)
        if room <= 0 or not candidates:
            return bare, [each.dropped(DropReason.BUDGET, self.count(each.piece)) for each in candidates]
        sizes = [self.count(each.piece) for each in candidates]
        possible, too_large = fits_alone(candidates, sizes, room)
        measure.label(possible)
        kept = self._keep(measure, possible, room)
        while possible and not kept:  # the first is smaller than the room, but not with the marks around it
            first = possible.pop(0)
            too_large.append((first, self.count(first.piece)))
            kept = self._keep(measure, possible, room)
        dropped = [each.dropped(DropReason.TOO_LARGE, size) for each, size in too_large]
        dropped += [each.dropped(DropReason.BUDGET, self.count(each.piece)) for each in possible[kept:]]
        return _with(bare, possible[:kept]), dropped

    def _keep(self, measure: _Measure, candidates: list[Candidate], room: int) -> int:
        """How many fit: guessed from their sizes, and settled by what is really sent."""

        def fits(some: int) -> bool:
            return measure.size(_with(measure.bare, candidates[:some])) <= self.budget

        filled = list(accumulate(self.count(each.piece) for each in candidates))
        return settle(bisect_right(filled, room), len(candidates), fits)

    def _beside(self) -> int:
        """Tokens of what is sent beside the rendered context."""
        return tools_tokens(self.request.tools, self.count) + self.request.reserved_tokens

    def _accounted(self, measure: _Measure, context: ComputedContext) -> ComputedContext:
        spent = measure.tokens(context)
        spent[TokenSource.TOOLS] = tools_tokens(self.request.tools, self.count)
        spent[TokenSource.RESERVED] = self.request.reserved_tokens
        estimated = sum(spent.values())
        over = estimated > self.budget
        warnings = list(context.warnings)
        if over:
            detail = f"{estimated} tokens that may not be dropped, and the budget is {self.budget}"
            warnings.append(ContextWarning("budget", "over_budget", detail=detail))
        return context.replace(estimated_tokens=estimated, tokens_by_source=spent, over_budget=over, warnings=warnings)


class _Measure:
    """What contexts cost that differ from the bare one in nothing but what was found."""

    def __init__(self, bare: ComputedContext, count: Count, *, beside: int) -> None:
        self.bare = bare
        self._count = count
        self._beside = beside
        self._sizes = RenderedSizes(bare, count)
        self._labelled: dict[int, str] = {}
        self._told: ItemText = lambda item: self._labelled[id(item)]

    def label(self, candidates: Sequence[Candidate]) -> None:
        """Take the texts of what may be in the contexts; the candidates must outlive this."""
        self._labelled = {id(each.value): each.piece for each in candidates}

    def size(self, context: ComputedContext) -> int:
        """In the form in which it is largest, with what is sent beside it."""
        return max(self._by_form(context).values()) + self._beside

    def tokens(self, context: ComputedContext) -> dict[TokenSource, int]:
        """What the context costs in the form in which it is largest, by what it is spent on."""
        sizes = self._by_form(context)
        return self._sizes.spent(max(sizes, key=sizes.__getitem__), data_block(context, self._told))

    def _by_form(self, context: ComputedContext) -> dict[Form, int]:
        block = block_text(context, self._told)
        return {form: self._sizes.size(form, block) for form in _forms(context)}


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

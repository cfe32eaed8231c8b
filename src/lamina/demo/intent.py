"""The demo's last step: an intent whose context is computed from memories, a thread and documents, in a budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from lamina.demo.show import show_context, show_step
from lamina.demo.texts import (
    ExpectedContext,
    load_documents,
    load_expected_context,
    load_extra_memories,
    load_thread,
    load_turns,
)
from lamina.domain.context import ComputedContext
from lamina.domain.intent import IntentStatus
from lamina.kernel import Kernel
from lamina.settings.loading import load_config
from lamina.settings.models import ModelConfig

__all__ = ["ContextReport", "compute_for_intent"]

WINDOW: Final = 6
"""Messages that the demo's thread shows in full; what is older is folded into its summary."""

CHUNK_SIZE: Final = 120
"""Tokens: the demo's documents are short, and a section of one is what answers."""
_PERSONAL: Final = frozenset({"session", "longterm"})

HOW_TO_ANSWER: Final = (
    "No language model is configured, so nobody answers. Name one and run this again, for example: "
    "LAMINA_MODEL=ollama:llama3.2 lamina demo"
)


@dataclass(frozen=True, slots=True)
class ContextReport:
    """What the context held.

    `missing` are expected memories, documents and words of the summary that are not in it, `leaked` the ids of
    what belongs to another owner, kept or dropped. `answered` is None if there is no model to ask.
    """

    kept: int
    dropped: int
    tokens: int
    token_budget: int
    over_budget: bool
    missing: tuple[str, ...] = ()
    leaked: tuple[str, ...] = ()
    answered: bool | None = None
    sources: tuple[str, ...] = field(default=())

    @property
    def as_expected(self) -> bool:
        """Whether everything that should be in it is, nothing else's is, and something had to be left out."""
        return not (self.missing or self.leaked or self.over_budget) and self.dropped > 0

    def __str__(self) -> str:
        return f"a context of {self.tokens} of {self.token_budget} tokens, {self.kept} kept and {self.dropped} dropped"


async def compute_for_intent(
    console: Console, path: Path, *, environ: Mapping[str, str] | None = None
) -> ContextReport:
    """Add a thread, documents and memories of other layers to the file, compute the context, and ask a model if any.

    The model is the one that the user's settings name.
    """
    expected = load_expected_context()
    model = load_config(environ=environ).config.model
    settings: dict[str, Any] = {
        "memory": {"provider": "sqlite", "path": path},
        "conversation": {"window": WINDOW},
        "context": {"token_budget": expected.token_budget, "longterm_limit": 8, "organizational_limit": 3},
        "rag": {"chunk_size": CHUNK_SIZE, "chunk_overlap": 0},
    }
    async with Kernel(settings) as kernel:  # without a model, so that the summary is the same everywhere
        owned = await _fill(kernel, expected)
    async with Kernel(settings if model is None else {**settings, "model": model}) as kernel:
        context = await kernel.context_engine.compute(
            intent_id="demo", goal=expected.goal, owner_id=expected.owner, thread_id=expected.thread_id, touch=False
        )
        show_step(
            console,
            "Compute the context of an intent",
            f"{expected.goal}\n(asked as {expected.owner}, in a thread whose older messages are folded into a summary; "
            f"from memories of all layers, the thread and documents, in {expected.token_budget} tokens)",
        )
        show_context(console, context)
        answered = await _answer(console, kernel, expected, model)
    return _report(context, expected, owned, answered)


async def _fill(kernel: Kernel, expected: ExpectedContext) -> dict[str, str]:
    """Store what the intent draws on; to whom each personal piece belongs, by id."""
    await kernel.memory_engine.store_many(load_extra_memories())
    for document in load_documents():
        await kernel.rag.ingest(
            document["text"], document["source"], owner=document["owner"], category=document["category"]
        )
    for message in load_thread():
        await kernel.conversation.add_messages(expected.thread_id, [message], owner=expected.owner)
    items = [*(turn.as_item() for turn in load_turns()), *load_extra_memories()]
    owned: dict[str, str] = {item["id"]: item["owner"] for item in items if item["layer"] in _PERSONAL}
    for head in await kernel.rag.list_documents():
        if head.owner is not None:
            owned |= dict.fromkeys((chunk.id for chunk in await kernel.rag.chunks(head.id)), head.owner)
    return owned


async def _answer(
    console: Console, kernel: Kernel, expected: ExpectedContext, model: ModelConfig | None
) -> bool | None:
    """Show the model's answer, or how to get one."""
    console.print()
    if model is None:
        console.print(HOW_TO_ANSWER, style="dim", highlight=False, soft_wrap=True)
        return None
    result = await kernel.submit(goal=expected.goal, owner=expected.owner, thread_id=expected.thread_id)
    if result.status is not IntentStatus.COMPLETED:
        console.print(Text(f"{model.spec()} did not answer. {result.error}", style="red"))
        return False
    console.print(Text.assemble((f"{model.spec()} answers: ", "bold"), str(result.answer)))
    return True


def _report(
    context: ComputedContext, expected: ExpectedContext, owned: Mapping[str, str], answered: bool | None
) -> ContextReport:
    conversation = context.conversation
    said = "" if conversation is None else conversation.summary or ""
    memories = {entry.id for entry in context.memories}
    documents = {chunk.source for chunk in context.documents}
    seen = [*memories, *(chunk.id for chunk in context.documents), *(item.id for item in context.dropped)]
    return ContextReport(
        kept=len(memories) + len(context.documents) + (0 if conversation is None else len(conversation.messages)),
        dropped=len(context.dropped),
        tokens=context.estimated_tokens,
        token_budget=context.token_budget,
        over_budget=context.over_budget,
        missing=(
            *(id for id in expected.memories if id not in memories),
            *(source for source in expected.documents if source not in documents),
            *(words for words in expected.in_summary if words not in said),
        ),
        leaked=tuple(id for id in seen if owned.get(id, expected.owner) != expected.owner),
        answered=answered,
        sources=tuple(source.value for source, tokens in context.tokens_by_source.items() if tokens),
    )

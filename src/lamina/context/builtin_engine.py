"""The engine that serves where no plug-in does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lamina.context.plugin import (
    AssembleParams,
    AssembleResult,
    BaseContextEngine,
    CompactParams,
    CompactResult,
    EngineInfo,
)
from lamina.context.trimming import trim_messages, without_orphans
from lamina.domain.message import Message, Role
from lamina.domain.message_size import messages_tokens
from lamina.ports.token_counter import TokenCounter

__all__ = ["BUILTIN_ID", "BuiltinEngine"]

BUILTIN_ID: Final = "default"
_SUMMARY_SHARE: Final = 0.2
"""Of what the messages cost: the size of their summary, where no budget is given."""


class BuiltinEngine(BaseContextEngine):
    """Shows the newest messages that fit, and summarises by picking sentences; `counter` counts."""

    info: EngineInfo = EngineInfo(BUILTIN_ID, "Default Context Engine")

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter

    async def assemble(self, params: AssembleParams) -> AssembleResult:
        """The messages, from the newest back, that fit the budget; tool calls stay with their results."""
        kept, _ = trim_messages(without_orphans(params.messages), params.token_budget, self._counter.count)
        return AssembleResult(kept, self.count(kept))

    async def compact(self, params: CompactParams) -> CompactResult:
        """A summary of everything but system messages; not made, unless forced, where they fit the budget."""
        before = self.count(params.messages)
        if not params.force and (params.token_budget is None or before <= params.token_budget):
            return CompactResult(compacted=False, tokens_before=before, tokens_after=before, reason="fits the budget")
        spoken = [message for message in params.messages if message.role is not Role.SYSTEM]
        share = max(1, int(before * _SUMMARY_SHARE))
        most = share if params.token_budget is None else min(share, params.token_budget)
        summary = await self.summarize(spoken, max_tokens=most)
        if not summary:
            return CompactResult(
                compacted=False, tokens_before=before, tokens_after=before, reason="nothing to summarise"
            )
        return CompactResult(
            compacted=True, summary=summary, tokens_before=before, tokens_after=self.count_text(summary)
        )

    def count(self, messages: Sequence[Message]) -> int:
        """What the messages cost, by the counter in force."""
        return messages_tokens(messages, self._counter.count)

    def count_text(self, text: str) -> int:
        """What the text costs, by the counter in force."""
        return self._counter.count(text)

"""How long conversations are kept: the window, the summary, the compaction."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from lamina.domain.secrets import SecretsPolicy
from lamina.errors import ConfigError
from lamina.settings.strict_model import Number, StrictModel, WholeNumber
from lamina.settings.tiers import ContextThresholds

__all__ = ["CompactionConfig", "ConversationConfig", "SummaryConfig"]

_PROMPT_MARGIN: Final = 400
"""Tokens for the schema and for what a provider puts around messages."""
_LEAST_ROOM: Final = 400
_LISTS_SHARE: Final = 0.5
_MARKS_TOKENS: Final = 100
"""Room for the topics and facts of an answer beside its text, and for the marks of JSON."""


class CompactionConfig(StrictModel):
    """When a long thread is folded: beyond `threshold` + `keep_recent` messages, all but the last `keep_recent`."""

    enabled: bool = True
    threshold: Annotated[WholeNumber, Field(ge=1)] = 50
    keep_recent: Annotated[WholeNumber, Field(ge=0)] = 10


class SummaryConfig(StrictModel):
    """How summaries of threads are written. Sizes are in tokens, `timeout` in seconds for each answer.

    `tokens` is the most that a summary has, whatever it stands for; `cover_tokens` of the extracts that
    stand for live messages which a context has no place for. `window` is what the summarising model can
    read and write at once: a longer backlog is given to it in pieces, `max_calls` at most; beyond that,
    extracts of the backlog are. After `max_failures` failures in a row the summary is extracted without
    the model, which is then asked again from time to time. `foreign_facts` says what becomes of a fact that holds
    words of a tool's result or a document and not of the user: it is refused, or with "keep" becomes a memory that
    is untrusted.
    """

    tokens: Annotated[WholeNumber, Field(ge=50)] = 800
    cover_tokens: Annotated[WholeNumber, Field(ge=50)] = 400
    window: Annotated[WholeNumber, Field(ge=1_000)] = 8_000
    max_calls: Annotated[WholeNumber, Field(ge=1, le=1_000)] = 16
    max_failures: Annotated[WholeNumber, Field(ge=1)] = 3
    timeout: Annotated[Number, Field(gt=0)] = 60.0
    foreign_facts: Literal["refuse", "keep"] = "refuse"

    @property
    def answer_tokens(self) -> int:
        """The most that an answer of the model may have."""
        return int(self.tokens * (1 + _LISTS_SHARE)) + _MARKS_TOKENS

    def room(self, instruction: int) -> int:
        """How many tokens of messages go into one call beside an instruction of this size."""
        return max(self.window - instruction - self.tokens - self.answer_tokens - _PROMPT_MARGIN, _LEAST_ROOM)

    @model_validator(mode="after")
    def _check_window(self) -> Self:
        least = self.tokens + self.answer_tokens + 2 * _PROMPT_MARGIN + _LEAST_ROOM
        if self.window < least:
            problem = f"of {self.window} tokens has no room for messages beside a summary of {self.tokens}"
            raise ConfigError("window", problem, f"Give at least {least}, or fewer tokens to the summary.")
        return self


class ConversationConfig(StrictModel):
    """How much of a thread stays in full, and what becomes of the rest.

    `window` messages stay, and the ones before them are folded into the summary, `summarize_batch_size`
    at a time. With a `compaction` block that rule holds instead. `context_messages` is how many of the
    last messages go into a context: a window larger than that shrinks to it, and so nothing is ever
    neither shown nor summarised. `store_facts` says whether the facts that a model finds while it
    summarises become memories; None: only with compaction. `context_engineering` keeps the tokens of a
    thread inside tiers, after its messages were counted; in a kernel its `pre_rot_threshold` is half of the
    context's token budget, at most the default, unless it is given. `secrets` is as in the
    memory block, which it follows if it is not given.
    """

    window: Annotated[WholeNumber, Field(ge=1)] = 50
    summarize_batch_size: Annotated[WholeNumber, Field(ge=1)] = 1
    context_messages: Annotated[WholeNumber, Field(ge=1)] | None = None
    compaction: CompactionConfig | None = None
    summary: SummaryConfig = SummaryConfig()
    store_facts: bool | None = None
    secrets: SecretsPolicy | None = None
    context_engineering: ContextThresholds | None = None

    @property
    def compacts(self) -> bool:
        """Whether the rule of compaction holds."""
        return self.compaction is not None and self.compaction.enabled

    @property
    def shown(self) -> int | None:
        """How many of the last messages a context shows; None for all live ones."""
        if self.context_messages is None or self.compaction is None or not self.compaction.enabled:
            return self.context_messages
        return max(self.context_messages, self.compaction.keep_recent)

    @property
    def stores_facts(self) -> bool:
        """Whether facts become memories."""
        return self.compacts if self.store_facts is None else self.store_facts

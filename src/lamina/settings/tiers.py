"""When a conversation kept under the token tiers is shortened, and by how much."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from lamina.errors import ConfigError
from lamina.settings.strict_model import Number, StrictModel, WholeNumber

__all__ = ["ContextThresholds"]

_SUMMARY_SHARE = 0.1
_MOST_SUMMARY_TOKENS = 4_000


class ContextThresholds(StrictModel):
    """Limits in tokens, and triggers as shares of `pre_rot_threshold`; what is left out has its default.

    `pre_rot_threshold` is the size up to which the model is known to answer well. From `compaction_trigger`
    of it on, messages older than the last `recent_to_keep` are replaced by references (reversibly); from
    `summarization_trigger` on, what is older is replaced by a summary. `hard_limit` is what the model
    takes at all. `compaction_fraction` below 1 leaves the newer part of the older messages in full;
    `min_compaction_gain`, a share of `pre_rot_threshold`, makes a summary follow early when references
    saved less than that (None: never). A summary has at most `summary_tokens` (None: a tenth of
    `pre_rot_threshold`, at most 4,000); a summariser gets at most `summarizer_window` at a time.
    """

    pre_rot_threshold: Annotated[WholeNumber, Field(gt=0)] = 150_000
    compaction_trigger: Annotated[Number, Field(gt=0, le=1)] = 0.8
    summarization_trigger: Annotated[Number, Field(gt=0, le=1)] = 0.95
    recent_to_keep: Annotated[WholeNumber, Field(ge=0, le=100_000)] = 10
    hard_limit: Annotated[WholeNumber, Field(gt=0)] = 1_000_000
    compaction_fraction: Annotated[Number, Field(gt=0, le=1)] = 1.0
    min_compaction_gain: Annotated[Number, Field(ge=0, le=1)] | None = None
    summary_tokens: Annotated[WholeNumber, Field(ge=16)] | None = None
    summarizer_window: Annotated[WholeNumber, Field(ge=500)] = 16_000

    @property
    def compact_from(self) -> float:
        """From how many tokens on tier 2 begins."""
        return self.pre_rot_threshold * self.compaction_trigger

    @property
    def summarize_from(self) -> float:
        """From how many tokens on tier 3 begins."""
        return self.pre_rot_threshold * self.summarization_trigger

    @property
    def summary_limit(self) -> int:
        """How many tokens a summary may have."""
        if self.summary_tokens is not None:
            return self.summary_tokens
        return max(16, min(_MOST_SUMMARY_TOKENS, int(self.pre_rot_threshold * _SUMMARY_SHARE)))

    @classmethod
    def of(cls, given: Self | Mapping[str, Any] | None) -> Self:
        """The thresholds as they are given, or of a mapping that may leave fields out; None: the defaults.

        Raises:
            ConfigError: it is neither, or a value is wrong.
        """
        if isinstance(given, cls):
            return given
        if given is not None and not isinstance(given, Mapping):
            problem = f"must be ContextThresholds or a mapping, not {type(given).__name__}"
            raise ConfigError("thresholds", problem, "Give one of them.")
        return cls(**{str(key): value for key, value in (given or {}).items()})

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.summarization_trigger < self.compaction_trigger:
            problem = f"is {self.summarization_trigger:g}, below compaction_trigger ({self.compaction_trigger:g})"
            remedy = "Tier 2 would never be reached: raise it, or lower compaction_trigger."
            raise ConfigError("summarization_trigger", problem, remedy)
        if self.hard_limit < self.pre_rot_threshold:
            problem = f"is {self.hard_limit}, below pre_rot_threshold ({self.pre_rot_threshold})"
            raise ConfigError("hard_limit", problem, "Raise it, or lower pre_rot_threshold.")
        return self

"""How many tokens a model was sent and gave."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Usage"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that the provider counted; zero where it counted none."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Both together."""
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens)

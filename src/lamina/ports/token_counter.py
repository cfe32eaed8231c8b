"""What says how many tokens a text has."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

__all__ = ["TokenCounter"]


class TokenCounter(Protocol):
    """Counts tokens: pure, quick, and the same for the same text. Safe to call from any thread."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Which count this is, such as `estimate` or `o200k_base`; stored beside counts that are kept."""
        ...

    @property
    @abstractmethod
    def is_exact(self) -> bool:
        """Whether it is the model's own count, and not an estimate."""
        ...

    @abstractmethod
    def count(self, text: str) -> int:
        """How many tokens the text has; 0 for the empty one."""
        ...

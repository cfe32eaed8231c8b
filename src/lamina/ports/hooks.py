"""Callbacks that a host hangs into the memory engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from lamina.domain.memory import MemoryEntry
from lamina.domain.recall import RecallResult

__all__ = ["ForgetReason", "MemoryHooks"]


class ForgetReason(StrEnum):
    """Why a memory was deleted."""

    EXPLICIT = "explicit"
    FILTER = "filter"
    EXPIRED = "expired"
    CLEARED = "cleared"


BeforeStore: TypeAlias = Callable[[MemoryEntry], "MemoryEntry | Awaitable[MemoryEntry | None] | None"]
AfterRecall: TypeAlias = Callable[[list[RecallResult], str], "list[RecallResult] | Awaitable[list[RecallResult]]"]
OnForget: TypeAlias = Callable[[MemoryEntry, ForgetReason], "Awaitable[None] | None"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryHooks:
    """Sync or async callables.

    `on_before_store` gets a copy that it may change, and returns it, or None to veto; it runs before
    embedding, and what it raises reaches the caller with nothing stored. `on_after_recall` gets the
    results above `min_score` before the cut to `limit`; its order is kept, and what it raises is logged.
    `on_forget` runs after each deletion; what it raises is logged.
    """

    on_before_store: BeforeStore | None = None
    on_after_recall: AfterRecall | None = None
    on_forget: OnForget | None = None

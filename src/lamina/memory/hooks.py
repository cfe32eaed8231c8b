"""Runs a host's callbacks: a guard's failure stops the store, a listener's is logged."""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Sequence
from typing import Any

from lamina.domain.memory import MemoryEntry
from lamina.domain.recall import RecallResult
from lamina.domain.validation import check_entry
from lamina.errors import InvalidType, ScopeError
from lamina.ports.hooks import ForgetReason, MemoryHooks
from lamina.telemetry import place_of

__all__ = ["HookRunner"]

log = logging.getLogger(__name__)


class HookRunner:
    """Calls `MemoryHooks`, sync or async."""

    def __init__(self, hooks: MemoryHooks) -> None:
        self._hooks = hooks

    async def before_store(self, entry: MemoryEntry) -> MemoryEntry | None:
        """The entry as the guard leaves it, checked anew, or None for a veto; what the guard raises is raised."""
        hook = self._hooks.on_before_store
        if hook is None:
            return entry
        changed = await _call(hook, copy.deepcopy(entry))
        if changed is None:
            return None
        if not isinstance(changed, MemoryEntry):
            problem = f"must return an entry or None, not {type(changed).__name__}"
            raise InvalidType("on_before_store", problem, "Return the entry that was passed in.")
        if (changed.tenant, changed.id) != (entry.tenant, entry.id):
            raise ScopeError("on_before_store changed the tenant or the id of an entry, so it was not stored.")
        check_entry(changed)
        if changed.relevance != entry.relevance and changed.base_relevance == entry.base_relevance:
            changed.base_relevance = changed.relevance
        return changed

    @property
    def watches_recall(self) -> bool:
        """Whether there is a hook that wants to see results."""
        return self._hooks.on_after_recall is not None

    async def after_recall(self, results: list[RecallResult], query: str) -> list[RecallResult]:
        """The results as the hook leaves them, or unchanged if it fails."""
        hook = self._hooks.on_after_recall
        if hook is None:
            return results
        try:
            return _checked(await _call(hook, copy.deepcopy(results), query))
        except Exception as error:  # noqa: BLE001 - a host's code: its failure must not cost the caller the results
            log.error("on_after_recall failed; its changes are left out: %s", place_of(error))  # noqa: TRY400 - the message of an error may hold content
            return results

    async def on_forget(self, entries: Sequence[MemoryEntry], reason: ForgetReason) -> None:
        """Tell of each deletion."""
        hook = self._hooks.on_forget
        if hook is None:
            return
        for entry in entries:
            try:
                await _call(hook, entry, reason)
            except Exception as error:  # noqa: BLE001 - a host's code: the deletion has happened whatever the listener says
                log.error("on_forget failed for the memory %s: %s", entry.id, place_of(error))  # noqa: TRY400 - the message of an error may hold content


def _checked(changed: Any) -> list[RecallResult]:
    if not isinstance(changed, list | tuple) or not all(isinstance(each, RecallResult) for each in changed):
        raise InvalidType("on_after_recall", "must return a list of RecallResult", "Return the list.")
    return list(changed)


async def _call(hook: Any, *args: Any) -> Any:
    result = hook(*args)
    return await result if inspect.isawaitable(result) else result

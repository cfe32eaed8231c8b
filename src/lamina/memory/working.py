"""Working memory: a key-value store in this process, for any values, gone with the process."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from lamina.domain.memory import UNSET, Unset
from lamina.domain.validation import check_ttl
from lamina.errors import InvalidInput, InvalidType
from lamina.ports.clock import Clock, utc_now

__all__ = ["DEFAULT_WORKING_TTL", "WorkingItem", "WorkingMemory"]

DEFAULT_WORKING_TTL: Final = 3600.0
"""Seconds."""


@dataclass(frozen=True, slots=True)
class WorkingItem:
    """One live key and its value."""

    key: str
    value: Any


class WorkingMemory:
    """A thread-safe key-value store whose items may expire.

    `ttl` is the default time to live in seconds (None: items stay); with `max_items`, the least
    recently set item goes first when there is no room. Keys are in the order of their last `set`.
    """

    def __init__(
        self,
        *,
        ttl: float | timedelta | None = DEFAULT_WORKING_TTL,
        max_items: int | None = None,
        clock: Clock = utc_now,
    ) -> None:
        if max_items is not None and max_items < 1:
            raise InvalidInput("max_items", f"must be at least 1, not {max_items}", "Give None for no limit.")
        self._ttl = check_ttl(ttl)
        self._max_items = max_items
        self._clock = clock
        self._items: dict[str, tuple[Any, datetime | None]] = {}
        self._lock = threading.Lock()

    def set(self, key: str, value: Any, ttl: float | timedelta | Unset | None = UNSET) -> None:
        """Keep the value, replacing the key's former one and its time to live; `ttl=None` keeps it for good."""
        if not isinstance(key, str):
            raise InvalidType("key", f"must be text, not {type(key).__name__}", "Give a str.")
        seconds = self._ttl if isinstance(ttl, Unset) else check_ttl(ttl)
        now = self._clock()
        expires_at = None if seconds is None else now + timedelta(seconds=seconds)
        with self._lock:
            self._items.pop(key, None)
            self._items[key] = (value, expires_at)
            if self._max_items is not None and len(self._items) > self._max_items:
                self._drop_expired(now)
                while len(self._items) > self._max_items:
                    del self._items[next(iter(self._items))]

    def get(self, key: str, default: Any = None) -> Any:
        """The live value, or the default."""
        with self._lock:
            return self._items[key][0] if self._is_live(key) else default

    def has(self, key: str) -> bool:
        """Whether the key is live."""
        with self._lock:
            return self._is_live(key)

    def delete(self, key: str) -> bool:
        """Remove the key; False if it was not live."""
        with self._lock:
            was_live = self._is_live(key)
            self._items.pop(key, None)
            return was_live

    def get_by_prefix(self, prefix: str) -> list[WorkingItem]:
        """The live items whose keys start with the prefix, in the order they were set; all for an empty prefix."""
        with self._lock:
            self._drop_expired(self._clock())
            return [WorkingItem(key, value) for key, (value, _) in self._items.items() if key.startswith(prefix)]

    def size(self) -> int:
        """How many keys are live."""
        with self._lock:
            self._drop_expired(self._clock())
            return len(self._items)

    def clear(self) -> None:
        """Remove everything."""
        with self._lock:
            self._items.clear()

    def _is_live(self, key: str) -> bool:
        if key not in self._items:
            return False
        expires_at = self._items[key][1]
        return expires_at is None or expires_at > self._clock()

    def _drop_expired(self, now: datetime) -> None:
        for key in [key for key, (_, at) in self._items.items() if at is not None and at <= now]:
            del self._items[key]

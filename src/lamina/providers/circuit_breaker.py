"""Not calling a provider that is down, so that callers do not each wait for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lamina.errors import ConfigError, ProviderError, ProviderUnavailable

__all__ = ["CircuitBreaker"]


class CircuitBreaker:
    """Refuses calls to a provider that is down.

    After `failures` calls in a row that ended with `ProviderUnavailable`, every call fails at once, with the same
    error, for `cool_down` seconds. Then one call is tried, while others go on failing; if it finds the
    provider reachable all are let through again, otherwise the cool-down starts anew. A provider that refuses
    a text (`ProviderError`) is reachable: one bad text must not switch the embedder off for everybody. A
    cancelled call counts neither way.

    Args:
        provider: Its name, for messages.
        failures: How many in a row open the circuit.
        cool_down: Seconds until the trial call.
        monotonic: A clock that never goes back, in seconds.
    """

    def __init__(
        self,
        provider: str,
        *,
        failures: int = 3,
        cool_down: float = 30.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._provider = provider
        if failures < 1:
            raise ConfigError("failures", f"must be at least 1, not {failures}", "Give a positive number.")
        if cool_down < 0:
            raise ConfigError("cool_down", f"must be at least 0, not {cool_down}", "Give the seconds to wait.")
        self._allowed = failures
        self._cool_down = cool_down
        self._monotonic = monotonic
        self._failed = 0
        self._closed_from = 0.0
        self._trying = False
        self._lock = threading.Lock()

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Let a call through, unless the circuit is open, and learn from how it ends."""
        trial = self._admit()
        try:
            yield
        except ProviderUnavailable:
            self._count_failure()
            raise
        except ProviderError:
            self._count_success()
            raise
        else:
            self._count_success()
        finally:
            if trial:
                with self._lock:
                    self._trying = False

    def _admit(self) -> bool:
        """Let the call through, and return whether it is the trial; or refuse it."""
        with self._lock:
            if self._failed < self._allowed:
                return False
            wait = self._closed_from - self._monotonic()
            if wait > 0 or self._trying:
                raise ProviderUnavailable(
                    self._provider,
                    f"it failed {self._failed} times in a row, so it is not called now",
                    f"It is tried again in {max(wait, 0.0):.0f} s.",
                )
            self._trying = True
            return True

    def _count_failure(self) -> None:
        with self._lock:
            self._failed += 1
            self._closed_from = self._monotonic() + self._cool_down

    def _count_success(self) -> None:
        with self._lock:
            self._failed = 0

"""What a program said that it would write and had written, and whether that is what is there: a set checker.

A change is told before it is tried and after it is acknowledged. What was acknowledged must be there with its value;
what was only tried may be there or not; nothing else may be there; and what one change writes together, all of it is
there or nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

Values = Mapping[str, str | None]
"""By key, what is to be there; None is nothing."""

SHOWN = 5


@dataclass
class Change:
    """One call of the program under test."""

    values: Values
    is_whole: bool
    is_done: bool = False


@dataclass
class Verdict:
    """What was wrong, each kind with the keys."""

    lost: list[str] = field(default_factory=list)
    """Acknowledged, and not there, or there as it was before."""
    invented: list[str] = field(default_factory=list)
    """There, and never written, or never with this value."""
    torn: list[str] = field(default_factory=list)
    """Changes of which a part is there."""

    def findings(self) -> Iterator[str]:
        for kind in ("lost", "invented", "torn"):
            keys = getattr(self, kind)
            if keys:
                yield f"{kind}: {len(keys)}, such as {', '.join(keys[:SHOWN])}"


class Ledger:
    """The books about one place, which several programs wrote to, one after the other."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}
        """What was found at the last look."""
        self.acknowledged = 0
        """Single values that were acknowledged."""
        self.unknown = 0
        """Single values that were tried when the program was killed."""
        self._changes: dict[int, Change] = {}
        self._written: dict[str, set[str]] = {}

    def tried(self, number: int, values: Values, *, is_whole: bool) -> None:
        self._changes[number] = Change(values, is_whole)
        for key, value in values.items():
            if value is not None:
                self._written.setdefault(key, set()).add(value)

    def done(self, number: int) -> None:
        self._changes[number].is_done = True

    def settle(self, found: Mapping[str, str]) -> Verdict:
        """Compare with what is there now, which is what is known from here on."""
        verdict = Verdict()
        allowed = self._allowed()
        for key in sorted({*allowed, *found}):
            value = found.get(key)
            if value in allowed.get(key, {None}):
                continue
            was_written = value is None or value in self._written.get(key, set())
            (verdict.lost if was_written else verdict.invented).append(key)
        for change in self._changes.values():
            self.acknowledged += len(change.values) * change.is_done
            self.unknown += len(change.values) * (not change.is_done)
            if change.is_whole and not change.is_done and self._is_torn(change, found):
                verdict.torn.append(min(change.values))
        self.known = dict(found)
        self._changes = {}
        return verdict

    def _allowed(self) -> dict[str, set[str | None]]:
        """By key, what may be there. The changes of one key follow one another; those of several run side by side."""
        allowed: dict[str, set[str | None]] = {key: {value} for key, value in self.known.items()}
        for change in self._changes.values():
            for key, value in change.values.items():
                earlier: set[str | None] = set() if change.is_done else allowed.get(key, {None})
                allowed[key] = {*earlier, value}
        return allowed

    def _is_torn(self, change: Change, found: Mapping[str, str]) -> bool:
        return len({found.get(key) == value for key, value in change.values.items()}) > 1

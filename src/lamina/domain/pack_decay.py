"""How pack memories fade: which tier a memory belongs to after being idle for how long.

Every type of pack has a base unit of idle time; by default a memory steps down after 1, 2, 4 and 8 units.
Being read puts it back to the first tier, so that only what nobody needs fades.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Final

from lamina.errors import InvalidInput

__all__ = ["DEFAULT_STEPS", "TIER_FACTORS", "Decay", "Tier", "next_step", "tier_at"]


class Tier(StrEnum):
    """How much is left of a pack memory, from all to nothing that is retrieved."""

    FULL = "full"
    SUMMARY = "summary"
    """The key points: about 30 % of the text."""
    KEY_FACTS = "key_facts"
    """The core facts without their context: about 10 %."""
    EXISTENCE_MARKER = "existence_marker"
    """That there was such a memory; it can still be found by its meaning."""
    ARCHIVED = "archived"
    """In cold storage; it comes back only by `restore`."""


DEFAULT_STEPS: Final = (1.0, 2.0, 4.0, 8.0)

TIER_FACTORS: Final = {Tier.FULL: 1.0, Tier.SUMMARY: 0.95, Tier.KEY_FACTS: 0.9, Tier.EXISTENCE_MARKER: 0.8}
"""What the similarity of a memory that was found in this tier is multiplied by."""

_TIERS: Final = tuple(Tier)
_MAX_UNIT: Final = timedelta(days=100 * 365)
_MAX_STEP: Final = 10_000.0
_LAST_INSTANT: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Decay:
    """The idle times after which a memory is in the tiers after the first, in units.

    Raises:
        InvalidInput: the unit is not above zero, or the steps are not four numbers that grow.
    """

    unit: timedelta
    steps: tuple[float, ...] = DEFAULT_STEPS

    def __post_init__(self) -> None:
        if not timedelta() < self.unit <= _MAX_UNIT:
            raise InvalidInput("decay.unit", f"is {self.unit}", "Give a time above zero, and at most 100 years.")
        is_growing = all(one < other for one, other in pairwise((0.0, *self.steps)))
        if len(self.steps) != len(_TIERS) - 1 or not is_growing or not self.steps[-1] <= _MAX_STEP:
            remedy = f"Give four numbers above zero, each greater than the one before, and at most {_MAX_STEP:g}."
            raise InvalidInput("decay.steps", f"are {self.steps}", remedy)

    def idle_time(self, tier: Tier) -> timedelta:
        """How long a memory must have been idle to be in this tier."""
        place = _TIERS.index(tier)
        return timedelta() if place == 0 else self.unit * self.steps[place - 1]


def tier_at(now: datetime, *, idle_since: datetime, tier: Tier, decay: Decay) -> Tier:
    """The tier that the idle time asks for, several steps down if need be, and never above the present one.

    A clock that went back takes nothing up: a negative idle time asks for the first tier. Both instants are aware.
    """
    # In UTC: between instants of one zone Python reckons by the hands of the clock, which are moved twice a year.
    idle = now.astimezone(UTC) - idle_since.astimezone(UTC)
    asked = max((each for each in _TIERS if idle >= decay.idle_time(each)), key=_TIERS.index, default=tier)
    return max(asked, tier, key=_TIERS.index)


def next_step(*, idle_since: datetime, tier: Tier, decay: Decay) -> datetime | None:
    """When the memory leaves this tier if nobody reads it; None from the last one, and beyond the last instant."""
    place = _TIERS.index(tier)
    if place == len(_TIERS) - 1:
        return None
    idle, since = decay.idle_time(_TIERS[place + 1]), idle_since.astimezone(UTC)
    return None if _LAST_INSTANT - since < idle else since + idle

"""How often in a row a thread could not be summarised, kept with the thread so that no process starts from zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["RESERVED", "Setbacks", "of_user"]

RESERVED: Final = "lamina:"
"""What the keys of a thread's metadata begin with that are not the user's."""

_KEY: Final = f"{RESERVED}summarizer"
_FIRST_PAUSE: Final = 10
_LONGEST_PAUSE: Final = 320


@dataclass(frozen=True, slots=True)
class Setbacks:
    """`failures` in a row, why the last one, and from which message on the summariser is asked again."""

    failures: int = 0
    problem: str = ""
    resume_at: int = 0

    @classmethod
    def read(cls, metadata: Mapping[str, Any]) -> Setbacks:
        """What a thread's metadata say; none where they say nothing that can be read."""
        kept = metadata.get(_KEY)
        if not isinstance(kept, Mapping):
            return cls()
        failures, resume_at, problem = (kept.get(name) for name in ("failures", "resume_at", "problem"))
        if type(failures) is not int or type(resume_at) is not int or not isinstance(problem, str):
            return cls()
        return cls(failures, problem, resume_at)

    def written(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """The metadata with these set, or without any where nothing failed."""
        others = {key: value for key, value in metadata.items() if key != _KEY}
        if not self.failures:
            return others
        return {**others, _KEY: {"failures": self.failures, "problem": self.problem, "resume_at": self.resume_at}}

    def after(self, problem: str, *, last_index: int, most: int) -> Setbacks:
        """One more. From `most` on the summariser rests, for 10 messages at first and twice as many each time."""
        failures = self.failures + 1
        if failures < most:
            return Setbacks(failures, problem, 0)
        pause = min(_FIRST_PAUSE << min(failures - most, 10), _LONGEST_PAUSE)
        return Setbacks(failures, problem, last_index + pause)

    def allow(self, last_index: int) -> bool:
        """Whether the summariser is to be asked, now that the thread's newest message has this index."""
        return last_index >= self.resume_at


def of_user(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata without what is not the user's."""
    return {key: value for key, value in metadata.items() if not key.startswith(RESERVED)}

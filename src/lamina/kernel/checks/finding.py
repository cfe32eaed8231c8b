"""What a check finds, and what makes a function a check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from lamina.kernel.checks.subject import Subject

__all__ = ["Check", "Finding", "Status", "Verdict", "fault", "fine", "warn"]


class Status(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    """It works, and perhaps not as it is meant to."""
    ERROR = "error"
    """Something does not work, or is not safe."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What the check of this id found, and what to do about it; no remedy where all is well.

    No content is in it: ids, names and counts alone.
    """

    id: str
    status: Status
    found: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A finding without the id of its check."""

    status: Status
    found: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A question about the real state. Its id is that of a row in the guides' tables of troubles.

    `run` looks at settings alone unless `needs_stores`; then it is asked only where the stores could be opened.
    """

    id: str
    run: Callable[[Subject], Verdict]
    needs_stores: bool = True

    def __call__(self, subject: Subject) -> Finding:
        """The finding."""
        verdict = self.run(subject)
        return Finding(self.id, verdict.status, verdict.found, verdict.remedy)


def fine(found: str) -> Verdict:
    """All is well."""
    return Verdict(Status.OK, found)


def warn(found: str, remedy: str) -> Verdict:
    """It works, and perhaps not as it is meant to."""
    return Verdict(Status.WARNING, found, remedy)


def fault(found: str, remedy: str) -> Verdict:
    """Something is wrong."""
    return Verdict(Status.ERROR, found, remedy)

"""A commit as writes of documents, each under its condition, and its size."""

from __future__ import annotations

from typing import Any, Final

from lamina.adapters._shared.names import key_of_names
from lamina.adapters._shared.records import Change, Commit, ControlChange, TooLarge
from lamina.adapters.firestore.documents import Documents, Write, as_message
from lamina.adapters.firestore.memories import MAX_DOCUMENT, check_limits, document_of, version_of
from lamina.adapters.firestore.values import size_of
from lamina.domain.memory import MemoryEntry
from lamina.errors import InvalidInput
from lamina.ports.memory_adapter import HISTORY_KEPT

__all__ = ["PAST", "Changes", "control_name", "memory_name"]

PAST: Final = "past"
"""The collection below a memory's document that holds what it was."""

MAX_WRITES: Final = 500
MAX_BYTES: Final = 4_000_000
"""Firestore's limit is 10 MiB for a commit; its emulator takes 4 MiB in one message."""


def memory_name(documents: Documents, tenant: str, id: str) -> str:
    """The name of the memory's document."""
    return documents.name(key_of_names("memory", tenant, id))


def control_name(documents: Documents, tenant: str, key: str) -> str:
    """The name of the control's document."""
    return documents.name("lamina", "controls", key_of_names("control", tenant, key))


class Changes:
    """The writes of a commit, at most one for each document, and what must not have changed beside them."""

    def __init__(self, documents: Documents, commit: Commit) -> None:
        self._documents = documents
        self._writes: list[Any] = []
        self._unchanged: dict[str, Any] = {}
        for change in commit.changes:
            self._change(commit.tenant, change)
        for control in commit.controls:
            self._control(commit.tenant, control)
        if len(self._writes) > MAX_WRITES or sum(each.ByteSize() for each in self._writes) > MAX_BYTES:
            raise TooLarge

    def send(self) -> None:
        """Write all or nothing.

        Raises:
            Stale: what it was worked out from has changed.
        """
        self._documents.commit(self._writes, self._unchanged)

    def _change(self, tenant: str, change: Change) -> None:
        name = memory_name(self._documents, tenant, change.id)
        before = 0 if change.old is None else change.old.version[1]
        condition = True if change.old is None else change.old.version[0]
        past = 0 if change.forgets else before
        new = change.new
        values = None if new is None else document_of(new, past + len(change.past))
        if new is not None and values is not None:
            check_limits(name, new, values)
        self._add(Write(name, values, condition))
        self._history(name, change, before)

    def _history(self, name: str, change: Change, before: int) -> None:
        """What is new in it, what is beyond what is kept, and when it may go."""
        past = 0 if change.forgets else before
        still = () if change.new is None else _kept(past + len(change.past))
        written = {number: former for number, former in enumerate(change.past, past + 1) if number in still}
        stays = () if change.forgets else still
        for number in _kept(before):
            if number not in stays and number not in written:
                self._add(Write(_version_name(name, number), None))
        if change.new is None:
            return
        for number, former in written.items():
            values = {**version_of(former), "number": number}
            values.pop("expires_at", None)
            self._add(Write(_version_name(name, number), values | _expiry(change.new)))
        if change.old is not None and change.old.entry.expires_at != change.new.expires_at:
            for number in (each for each in _kept(before) if each in stays):
                self._add(Write(_version_name(name, number), _expiry(change.new), only=["expires_at"]))

    def _control(self, tenant: str, change: ControlChange) -> None:
        name = control_name(self._documents, tenant, change.key)
        mark = None if change.old is None else change.old.version
        if change.value is None:
            self._unchanged[name] = mark
            return
        values = {"value": change.value}
        if size_of(name, values) > MAX_DOCUMENT:
            problem = f"makes a document of {size_of(name, values)} bytes, and Firestore keeps at most {MAX_DOCUMENT}"
            raise InvalidInput("value", problem, "Make it smaller.")
        self._add(Write(name, values, True if mark is None else mark))

    def _add(self, made: Write) -> None:
        self._writes.append(as_message(made))


def _version_name(name: str, number: int) -> str:
    return f"{name}/{PAST}/{number}"


def _kept(past: int) -> range:
    """The numbers of the versions that are there when so many were ever made."""
    return range(max(1, past - HISTORY_KEPT + 1), past + 1)


def _expiry(entry: MemoryEntry) -> dict[str, Any]:
    """When a version goes: with its memory."""
    return {name: value for name, value in version_of(entry).items() if name == "expires_at"}

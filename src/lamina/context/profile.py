"""Who a user is to the host, and what they prefer."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, Final

from lamina.context.sources import ProfileProvider
from lamina.domain.context import UserProfile
from lamina.domain.context_block import NOTES
from lamina.domain.memory import MemoryEntry, Trust
from lamina.domain.text import clean, is_blank
from lamina.errors import InvalidInput, InvalidType

__all__ = ["PREFERENCE_TAGS", "ask_profile", "preferences_of", "read_profile", "usable_preferences"]

PREFERENCE_TAGS: Final = ("preference", "pref")

_FIELDS: Final = ("role", "permissions", "policies")


async def ask_profile(provider: ProfileProvider, owner: str) -> UserProfile:
    """What the host's provider says, checked.

    Raises:
        InvalidType: it gave something that is no profile.
        InvalidInput: a field of it cannot be used.
    """
    given = provider(owner)
    return read_profile(await given if inspect.isawaitable(given) else given)


def read_profile(given: object) -> UserProfile:
    """A profile, a mapping with its fields, or None for the defaults; what else a mapping holds is left alone."""
    if given is None:
        return UserProfile()
    if isinstance(given, UserProfile):
        given = {name: getattr(given, name) for name in _FIELDS}
    if not isinstance(given, Mapping):
        remedy = "Return a UserProfile, a mapping with role, permissions and policies, or None."
        raise InvalidType("profile", f"must be a profile, not {type(given).__name__}", remedy)
    role = given.get("role")
    if role is not None and (not isinstance(role, str) or is_blank(role)):
        raise InvalidInput("profile.role", "must be text that can be seen", "Give a name, or leave it out.")
    return UserProfile(
        role=clean(role) if role else UserProfile().role,
        permissions=_texts("permissions", given.get("permissions")),
        policies=_texts("policies", given.get("policies")),
    )


def usable_preferences(entries: Iterable[MemoryEntry]) -> list[MemoryEntry]:
    """Those that somebody said who may speak for the user; the last said first."""
    trusted = [entry for entry in entries if entry.trust is Trust.TRUSTED]
    return sorted(trusted, key=lambda entry: (entry.updated_at, entry.seq, entry.id), reverse=True)


def preferences_of(entries: Iterable[MemoryEntry]) -> dict[str, Any]:
    """By key where a memory's metadata has `key` and `value`, the last said winning; the others under `notes`."""
    keyed: dict[str, Any] = {}
    notes: list[MemoryEntry] = []
    for entry in entries:
        key = entry.metadata.get("key")
        if isinstance(key, str) and key and key != NOTES and "value" in entry.metadata:
            keyed.setdefault(key, entry.metadata["value"])
        else:
            notes.append(entry)
    notes.sort(key=lambda entry: (entry.created_at, entry.seq, entry.id))
    told = {key: keyed[key] for key in sorted(keyed)}
    return {**told, NOTES: [entry.content for entry in notes]} if notes else told


def _texts(field: str, given: object) -> list[str]:
    if given is None:
        return []
    if isinstance(given, str) or not isinstance(given, list | tuple | set | frozenset):
        raise InvalidType(f"profile.{field}", f"must be a list of text, not {type(given).__name__}", "Give a list.")
    if not all(isinstance(each, str) for each in given):
        raise InvalidType(f"profile.{field}", "must hold text only", "Give a list of str.")
    texts = sorted(given) if isinstance(given, set | frozenset) else given
    return [clean(text) for text in texts if not is_blank(text)]

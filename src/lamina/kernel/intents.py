"""A caller's words become an intent: read and checked in one place, before anything is done."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final

from lamina.domain.intent import Intent, IntentStatus
from lamina.domain.text import check_name, clean, is_blank, snake_case
from lamina.domain.validation import check_metadata, clean_metadata
from lamina.errors import InvalidInput, InvalidType
from lamina.ports.clock import Clock

__all__ = ["new_intent_id", "read_intent"]

_SAME: Final = {"owner_id": "owner", "intent_id": "id"}
_KNOWN: Final = ("goal", "owner", "metadata", "id", "thread_id", "agent", "namespace")
_IN_METADATA: Final = ("thread_id", "agent", "namespace")
MAX_GOAL_CHARS: Final = 4_000_000


def new_intent_id() -> str:
    """`intent_` and 32 hex digits of a random UUID."""
    return f"intent_{uuid.uuid4().hex}"


def read_intent(
    given: Intent | Mapping[str, Any] | None, fields: Mapping[str, Any], *, clock: Clock, default_owner: str
) -> Intent:
    """The intent: an `Intent` as it is, else one of a mapping (camelCase or snake_case keys) and keywords, which win.

    Raises:
        InvalidInput: a field is missing, unknown, or has a value that cannot be used.
        InvalidType: a field has the wrong type.
    """
    if isinstance(given, Intent):
        if any(value is not None for value in fields.values()):
            raise InvalidInput("intent", "is given beside fields of one", "Give the intent alone, or use replace.")
        return _checked(given.replace(metadata=_metadata(given.metadata, {})))
    named = _named(given, fields)
    own = _metadata({} if named.get("metadata") is None else named["metadata"], named)
    owner = named.get("owner")
    id = named.get("id")
    goal = named.get("goal")
    if goal is None:
        raise InvalidInput("goal", "is missing", "Say what is wanted.")
    return _checked(
        Intent(
            id=new_intent_id() if id is None else id,
            goal=goal,
            owner=default_owner if owner is None else owner,
            created_at=clock(),
            metadata=own,
        )
    )


def _named(given: object, fields: Mapping[str, Any]) -> dict[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise InvalidType("intent", f"must be an Intent or a mapping, not {type(given).__name__}", "Give goal=….")
    named: dict[str, Any] = {}
    present = {name: value for name, value in fields.items() if value is not None}
    for key, value in (given or {}).items():
        field = _field(key)
        if named.setdefault(field, value) != value:
            raise InvalidInput(str(key), f"differs from another spelling of {field}", "Give one of the two.")
    return named | {_field(key): value for key, value in present.items()}


def _field(key: object) -> str:
    spelled = snake_case(key) if isinstance(key, str) else str(key)
    field = _SAME.get(spelled, spelled)
    if field not in _KNOWN:
        raise InvalidInput(str(key), "is no field of an intent", f"Use: {', '.join(_KNOWN)}.")
    return field


def _metadata(given: object, named: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata with `threadId` spelled `thread_id`, and what is named beside it put in."""
    if not isinstance(given, Mapping):
        raise InvalidType("metadata", f"must be a mapping, not {type(given).__name__}", "Give a dict.")
    own: dict[str, Any] = clean_metadata(dict(given))
    for old, name in (("threadId", "thread_id"), ("agentName", "agent")):
        if old in own:
            value = own.pop(old)
            if own.setdefault(name, value) != value:
                raise InvalidInput(f"metadata.{old}", f"differs from {name}", "Give one of the two.")
    for name in _IN_METADATA:
        value = named.get(name)
        if value is not None and own.setdefault(name, value) != value:
            raise InvalidInput(name, f"differs from metadata.{name}", "Give one of the two.")
        if own.get(name) is None:
            own.pop(name, None)
    return own


def _checked(intent: Intent) -> Intent:
    for name in ("id", "owner"):
        check_name(name, getattr(intent, name))
    if not isinstance(intent.goal, str):
        raise InvalidType("goal", f"must be text, not {type(intent.goal).__name__}", "Give a str.")
    if is_blank(intent.goal):
        raise InvalidInput("goal", "is blank", "Say what is wanted.")
    if len(intent.goal) > MAX_GOAL_CHARS:
        raise InvalidInput("goal", f"has {len(intent.goal)} characters", f"Use at most {MAX_GOAL_CHARS}.")
    if intent.status is not IntentStatus.PENDING:
        raise InvalidInput("intent", f"is {intent.status}", "Submit a new one.")
    check_metadata(intent.metadata)
    for name in _IN_METADATA:
        if intent.metadata.get(name) is not None:
            check_name(f"metadata.{name}", intent.metadata[name])
    return intent.replace(goal=clean(intent.goal))

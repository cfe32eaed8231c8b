"""What a caller asks of a context engine, checked before anything is looked up."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lamina.domain.context_form import Form
from lamina.domain.message_size import MESSAGE_OVERHEAD, Count
from lamina.domain.text import check_name, clean, snake_case
from lamina.domain.validation import check_whole_number
from lamina.errors import InvalidInput, InvalidType

__all__ = ["MAX_BUDGET", "ContextRequest", "read_request", "session_of", "tools_tokens"]

MAX_BUDGET: Final = 100_000_000
_REQUIRED: Final = ("intent_id", "goal", "owner_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRequest:
    """One intent. The meaning of each field is that of `ContextEngine.compute`."""

    intent_id: str
    goal: str
    owner_id: str
    thread_id: str | None = None
    namespace: str | None = None
    token_budget: int | None = None
    model: str | None = None
    system: str = ""
    tools: Sequence[Mapping[str, Any]] = ()
    reserved_tokens: int = 0
    form: Form | str | None = None
    touch: bool = True

    @property
    def searches(self) -> bool:
        """Whether there is anything to search for."""
        return bool(self.goal.strip())


def session_of(thread_id: str | None, *, owner: str, intent_id: str) -> str:
    """What plug-in engines know a conversation by: its thread; without one, the owner and the intent together.

    Ids of intents are the callers' to choose: two owners may choose the same, or one that is another's thread.
    """
    if thread_id is not None:
        return thread_id
    return f"intent_{hashlib.sha256(json.dumps([owner, intent_id]).encode()).hexdigest()}"


def read_request(intent: Any, given: Mapping[str, Any]) -> ContextRequest:
    """The request, from a mapping (camelCase or snake_case keys) and keywords, which win.

    Raises:
        InvalidInput: a field is missing, unknown, or has a value that cannot be used.
        InvalidType: a field has the wrong type.
    """
    if intent is not None and not isinstance(intent, Mapping):
        raise InvalidType("intent", f"must be a mapping, not {type(intent).__name__}", "Give a dict, or keywords.")
    fields: dict[str, Any] = {}
    for key, each in (intent or {}).items():
        name = snake_case(str(key))
        if fields.setdefault(name, each) != each:
            raise InvalidInput(str(key), f"differs from another spelling of {name}", "Give one of the two.")
    fields.update(given)
    known = [each.name for each in dataclasses.fields(ContextRequest)]
    for name in fields:
        if name not in known:
            raise InvalidInput(name, "is no field of an intent", f"Use: {', '.join(known)}.")
    for name in _REQUIRED:
        if fields.get(name) is None:
            raise InvalidInput(name, "is missing", f"Give {name}.")
    return _checked(ContextRequest(**fields))


def tools_tokens(tools: Sequence[Mapping[str, Any]], count: Count) -> int:
    """What the schemas of tools cost: their JSON, and as much again around each as around a message."""
    return sum(count(json.dumps(tool, ensure_ascii=False, sort_keys=True)) + MESSAGE_OVERHEAD for tool in tools)


def _checked(request: ContextRequest) -> ContextRequest:
    for name in ("intent_id", "owner_id", "thread_id", "namespace", "model"):
        value = getattr(request, name)
        if value is not None:
            check_name(name, value)
    for name in ("goal", "system"):
        if not isinstance(getattr(request, name), str):
            problem = f"must be text, not {type(getattr(request, name)).__name__}"
            raise InvalidType(name, problem, "Give a str; blank text is fine.")
    if request.token_budget is not None:
        check_whole_number("token_budget", request.token_budget, 1, MAX_BUDGET)
    check_whole_number("reserved_tokens", request.reserved_tokens, 0, MAX_BUDGET)
    _check_tools(request.tools)
    return dataclasses.replace(
        request, goal=clean(request.goal), system=clean(request.system), form=_read_form(request.form)
    )


def _check_tools(tools: object) -> None:
    if isinstance(tools, str | Mapping) or not isinstance(tools, Sequence):
        raise InvalidType("tools", f"must be a list, not {type(tools).__name__}", "Give a list of schemas.")
    for tool in tools:
        if not isinstance(tool, Mapping):
            raise InvalidType("tools", f"hold a {type(tool).__name__}", "Give each schema as a mapping.")
        try:
            json.dumps(tool, sort_keys=True)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput("tools", "hold what JSON cannot carry", "Give plain JSON schemas.") from error


def _read_form(form: Form | str | None) -> Form | None:
    if form is None:
        return None
    try:
        return Form(form)
    except ValueError:
        raise InvalidInput("form", f"{form!r} is unknown", f"Use one of: {', '.join(Form)}.") from None

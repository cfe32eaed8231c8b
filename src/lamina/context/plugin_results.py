"""What a plug-in engine gave back, read with suspicion: a result, a mapping with its fields, or a refusal."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from lamina.context.plugin import AssembleResult, BootstrapResult, CompactResult, IngestResult, MaintainResult
from lamina.domain.message import Message
from lamina.domain.message_formats import from_openai, to_anthropic, to_openai
from lamina.domain.message_size import messages_tokens
from lamina.domain.storable import storable_event
from lamina.domain.text import clean, snake_case
from lamina.domain.thread import ThreadEvent
from lamina.errors import InvalidInput, InvalidType

__all__ = ["read_assembly", "read_bootstrap", "read_compaction", "read_ingestion", "read_maintenance"]

_NO_ID: Final = "new"

R = TypeVar("R")


def read_assembly(given: object) -> AssembleResult:
    """The messages, as copies of the host's own.

    Raises:
        InvalidType: it is no such result, or a field has the wrong type.
        InvalidInput: a field has a value that cannot be used.
    """
    result = _result(AssembleResult, given)
    if isinstance(result.messages, str | Mapping) or not isinstance(result.messages, list | tuple):
        raise InvalidType("messages", f"must be a list, not {type(result.messages).__name__}", "Return a list.")
    _check_text("system_prompt_addition", result.system_prompt_addition)
    _check_count("estimated_tokens", result.estimated_tokens)
    messages = [_message(each) for each in result.messages]
    for write in (to_openai, to_anthropic):  # what cannot be sent is refused now, and not when it is sent
        write(messages)
    messages_tokens(messages, len)  # nor what cannot be counted
    addition = result.system_prompt_addition
    return AssembleResult(messages, result.estimated_tokens, None if addition is None else clean(addition))


def read_compaction(given: object) -> CompactResult:
    """As `read_assembly`; a compaction without a summary is refused."""
    result = _result(CompactResult, given)
    _check_bool("compacted", result.compacted)
    _check_text("summary", result.summary)
    _check_text("reason", result.reason)
    _check_count("tokens_before", result.tokens_before)
    _check_count("tokens_after", result.tokens_after)
    if result.compacted and not (result.summary or "").strip():
        raise InvalidInput("summary", "is blank though compacted is True", "Return the summary, or compacted=False.")
    return result


def read_bootstrap(given: object) -> BootstrapResult:
    """As `read_assembly`; None means success."""
    result = BootstrapResult(success=True) if given is None else _result(BootstrapResult, given)
    _check_bool("success", result.success)
    return result


def read_ingestion(given: object) -> IngestResult:
    """As `read_assembly`; None means that it was taken."""
    result = IngestResult(ingested=True) if given is None else _result(IngestResult, given)
    _check_bool("ingested", result.ingested)
    return result


def read_maintenance(given: object) -> MaintainResult:
    """As `read_assembly`; None means that nothing was done."""
    result = MaintainResult() if given is None else _result(MaintainResult, given)
    _check_bool("changed", result.changed)
    if not isinstance(result.details, Mapping):
        raise InvalidType("details", f"must be a mapping, not {type(result.details).__name__}", "Return a dict.")
    return MaintainResult(result.changed, dict(result.details))


def _result(kind: type[R], given: object) -> R:
    if isinstance(given, kind):
        return given
    if not isinstance(given, Mapping):
        problem = f"must be a {kind.__name__}, not {type(given).__name__}"
        raise InvalidType("result", problem, "Return one, or a mapping with its fields.")
    named = {snake_case(key): value for key, value in given.items() if isinstance(key, str)}
    fields = {each.name: each for each in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for name, each in fields.items():
        has_default = each.default is not dataclasses.MISSING or each.default_factory is not dataclasses.MISSING
        if name not in named and not has_default:
            raise InvalidInput(name, "is missing from the result", f"Return {', '.join(fields)}.")
    return kind(**{name: value for name, value in named.items() if name in fields})


def _message(given: object) -> Message:
    """A copy that the engine does not hold, as it could be stored; a mapping is one of chat completions."""
    message = from_openai([given])[0] if isinstance(given, Mapping) else given
    if not isinstance(message, Message):
        raise InvalidType("messages", f"hold a {type(message).__name__}", "Return Message objects.")
    kept = message.replace(id=message.id or _NO_ID, timestamp=None)
    return storable_event(ThreadEvent(kept)).message.replace(id=message.id, timestamp=message.timestamp)


def _check_text(field: str, value: Any) -> None:
    if value is not None and not isinstance(value, str):
        raise InvalidType(field, f"must be text or None, not {type(value).__name__}", "Return a str.")


def _check_bool(field: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise InvalidType(field, f"must be True or False, not {type(value).__name__}", "Return a bool.")


def _check_count(field: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise InvalidInput(field, f"must be a number from 0 up, not {value!r:.50}", "Return a count of tokens.")

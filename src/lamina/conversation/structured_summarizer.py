"""What makes a structured summary of events: a language model by a schema, or rules without one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from lamina.conversation.extractive import extract, files_line, is_decision
from lamina.conversation.structured import StructuredSummary, summary_from_json, summary_text, united
from lamina.conversation.transcript import files_in_results, packed
from lamina.domain.facts import paths_of, sentences
from lamina.domain.message import Message, ReasoningPart, Role
from lamina.domain.message_size import Count
from lamina.domain.thread import SummarySource, ThreadEvent
from lamina.errors import ProviderError
from lamina.ports.language_model import ChatMessage, ChatRole, LanguageModel
from lamina.prompts import render

__all__ = ["SUMMARY_KEY", "previous_summary", "summarize_by_model", "summarize_by_rules"]

SUMMARY_KEY: Final = "__summary__"
"""Where an event that shows a summary holds its JSON form."""

MAX_NEW_DECISIONS: Final = 8
_CLAUSE_CHARS: Final = 240
_WORDS_PER_TOKEN: Final = 0.6
_PROMPT_TOKENS: Final = 400
_TOOL_TOKENS: Final = 120
"""What a tool's result adds to what is picked from; the rest of it is mostly files, and these are in the store."""

_WRITING: Final = re.compile(r"write|edit|create|patch|replace|insert|save|delete|move|rename", re.IGNORECASE)
_PATCHED: Final = re.compile(r"^(?:\+\+\+ b/|\*\*\* (?:Update|Add|Delete) File: )(\S{1,300})", re.MULTILINE)
_HIDDEN: Final = "__"

_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "user_goal": {"type": "string"},
        "last_step": {"type": "string"},
        "modified_files": {"type": "array", "items": {"type": "string"}},
        "key_decisions": {"type": "array", "items": {"type": "string"}},
        "critical_context": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "value": {"type": "string"}},
                "required": ["name", "value"],
                "additionalProperties": False,
            },
        },
        "content": {"type": "string"},
    },
    "required": ["user_goal", "last_step", "modified_files", "key_decisions", "critical_context", "content"],
    "additionalProperties": False,
}


def previous_summary(events: Sequence[ThreadEvent]) -> tuple[StructuredSummary | None, list[ThreadEvent]]:
    """The summary that the first event shows, if it shows one, and the other events."""
    if events and SUMMARY_KEY in events[0].state:
        return summary_from_json(events[0].state[SUMMARY_KEY]), list(events[1:])
    return None, list(events)


def summarize_by_rules(events: Sequence[ThreadEvent], *, max_tokens: int, count: Count) -> StructuredSummary:
    """A summary that is picked from the events' own words, and says so; linear in their length.

    The goal is the first message of the user, the last step the last one of the model. Decisions are sentences
    of theirs that decide, demand or explain. Context is the union of the events' state, later values first.
    """
    previous, events = previous_summary(events)
    speech = [event.message for event in events if event.message.role in {Role.USER, Role.ASSISTANT}]
    decisions = [text for message in speech for text in sentences(message.text) if _is_decision(text)]
    summary = StructuredSummary(
        user_goal=_clause(next((each.text for each in speech if each.role is Role.USER and each.text.strip()), "")),
        last_step=_clause(next((each.text for each in reversed(speech) if _is_said_by_model(each)), "")),
        modified_files=list(_modified_files([event.message for event in events])),
        key_decisions=decisions[-MAX_NEW_DECISIONS:],
        critical_context=_state_of(events),
        source=SummarySource.EXTRACTIVE,
    )
    if previous is not None:
        summary = united(summary.replace(user_goal=previous.user_goal or summary.user_goal), previous)
    texts = (_text_to_pick_from(event.message, count) for event in events)
    room = max(max_tokens // 2, max_tokens - count(summary_text(summary)))
    former = (previous.content or "") if previous else ""
    named = files_line(files_in_results(event.message for event in events))
    content = extract(texts, max_tokens=room, count=count, previous=f"{former}\n{named}")
    return summary.replace(content=content or None)


async def summarize_by_model(
    events: Sequence[ThreadEvent], model: LanguageModel, *, max_tokens: int, window: int, count: Count
) -> StructuredSummary:
    """A summary that the model fills in; a backlog larger than its window is given to it in pieces, one after another.

    Raises:
        ProviderError: the model failed, or gave no summary that says anything.
    """
    summary, events = previous_summary(events)
    lines = [_line(event.message) for event in events]
    for part in _parts(lines, max(_PROMPT_TOKENS, window - max_tokens - _PROMPT_TOKENS), count):
        prompt = render(
            "structured_summary",
            words=str(int(max_tokens * _WORDS_PER_TOKEN)),
            previous="(none)" if summary is None else _delimited(summary_text(summary)),
            conversation=_delimited(part),
        )
        completion = await model.complete(
            [ChatMessage(ChatRole.USER, prompt)], schema=_SCHEMA, max_tokens=2 * max_tokens + _PROMPT_TOKENS
        )
        summary = united(_filled_in(completion.data, model), _only_facts(summary))
    if summary is None:
        return StructuredSummary(source=SummarySource.MODEL)
    return summary


def _filled_in(data: Mapping[str, Any] | None, model: LanguageModel) -> StructuredSummary:
    pairs = list((data or {}).get("critical_context") or [])
    context = {pair["name"]: pair["value"] for pair in pairs if pair["name"].strip() and pair["value"].strip()}
    summary = summary_from_json({**(data or {}), "critical_context": context}, source=SummarySource.MODEL)
    if summary.is_empty:
        problem = "gave a summary that says nothing"
        raise ProviderError(f"{model.provider}:{model.model}", problem, "The messages stay as they are.")
    return summary


def _only_facts(summary: StructuredSummary | None) -> StructuredSummary | None:
    """What of a former summary may not depend on whether the model takes it over."""
    return None if summary is None else summary.replace(last_step=None, content=None)


def _parts(lines: Sequence[str], room: int, count: Count) -> Iterator[str]:
    """The lines in parts of at most so many tokens, a line larger than that cut at sentences."""
    cut = (
        piece for line in lines for piece in ([line] if count(line) <= room else packed(sentences(line), room, count))
    )
    return packed(cut, room, count)


def _line(message: Message) -> str:
    calls = [f"calls {call.name}({call.arguments})" for call in message.tool_calls]
    speaker = message.role.value if message.name is None else f"{message.role.value} {message.name}"
    # Further lines are indented, so that no text can pass for another message.
    return "\n  ".join(f"{speaker}: {' '.join([message.text, *calls])}".splitlines())


def _delimited(text: str) -> str:
    """The text without the marks that would end its place in the prompt."""
    return re.sub(r"<(?=/?(?:record_so_far|conversation_part)>)", "&lt;", text)


def _text_to_pick_from(message: Message, count: Count) -> str:
    if message.role is Role.TOOL:
        picked = extract([message.text], max_tokens=_TOOL_TOKENS, count=count)
        return "\n".join(line for line in picked.split("\n") if line.startswith("- "))
    calls = [f"{call.name}: {call.arguments}" for call in message.tool_calls]
    return "\n".join([message.text, *calls])


def _is_said_by_model(message: Message) -> bool:
    only_thought = not isinstance(message.content, str) and all(isinstance(p, ReasoningPart) for p in message.content)
    return message.role is Role.ASSISTANT and not only_thought and bool(message.text.strip())


def _is_decision(sentence: str) -> bool:
    letters = sum(character.isalpha() or character == " " for character in sentence)
    return len(sentence) >= 20 and letters > 0.7 * len(sentence) and is_decision(sentence)  # noqa: PLR2004 - speech, not code


def _clause(text: str) -> str | None:
    """What the text begins with: whole sentences, as far as they are short."""
    begun = ""
    for sentence in sentences(text):
        if begun and len(begun) + len(sentence) > _CLAUSE_CHARS:
            break
        begun = f"{begun} {sentence}".strip()
    return begun or None


def _modified_files(messages: Sequence[Message]) -> Iterator[str]:
    """Paths in the arguments of tools that write, and in the heads of patches."""
    for message in messages:
        yield from _PATCHED.findall(message.text)
        for call in message.tool_calls:
            if _WRITING.search(call.name):
                yield from _paths_in_arguments(call.arguments)


def _paths_in_arguments(arguments: str) -> Iterator[str]:
    """Of each argument that is no more than a path; a file's content is none."""
    try:
        values = json.loads(arguments)
    except (ValueError, RecursionError):
        return
    for value in values.values() if isinstance(values, dict) else ():
        if isinstance(value, str) and len(value) <= _CLAUSE_CHARS and "\n" not in value:
            yield from (path for path in paths_of(value) if path == value)


def _state_of(events: Sequence[ThreadEvent]) -> dict[str, Any]:
    state: dict[str, Any] = {}
    for event in events:
        state.update({key: value for key, value in event.state.items() if not key.startswith(_HIDDEN)})
    return {key: value for key, value in state.items() if key not in {"session_id", "sessionId"}}

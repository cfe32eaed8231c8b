"""What a compacted message is said to be: enough for a model to decide whether to look at the original.

A label says of what kind the message is, what it is about (the paths and names it mentions most, the error, or
how it begins), and how large it is. No model is asked.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from lamina.domain.facts import Fact, FactKind, facts_of, sentences
from lamina.domain.message import FilePart, ImagePart, Message, Role
from lamina.domain.thread import ThreadEvent

__all__ = ["label_of", "named", "tool_names"]

MAX_LABEL_CHARS: Final = 320
_MAX_WORDS: Final = 8
_MAX_NAMES: Final = 5
_MAX_NAME_CHARS: Final = 120
_TOKENS_PER_NAME: Final = 80
"""How large a message must be for each name in its label, so that a label costs little beside what it replaces."""
_LOOKED_AT: Final = 200_000
"""Characters of a message that are looked through for its names: far more than a label needs."""
_SAMPLE_LINES: Final = 200
_MOST: Final = 0.5
_SIMPLE_CLAUSE: Final = 24

_KINDS: Final = (
    (
        "error trace",
        re.compile(r"Traceback \(most recent call last\)|^\s+at .{1,200}:\d+\)?$|^panic: |^goroutine \d+ \["),
    ),
    ("diff", re.compile(r"^diff --git |^@@ -\d+|^\*\*\* (?:Update|Add|Delete) File: ")),
)
_LINE_KINDS: Final = (
    ("file content", re.compile(r"\s*\d{1,6}(?:→|\t|: |\s?\|)")),
    ("table", re.compile(r"\s*\|.*\||[^,]{0,80}(?:,[^,]{0,80}){3,}$|[^\t]{0,80}(?:\t[^\t]{0,80}){2,}$")),
    ("search results", re.compile(r"[^\s:]{1,200}:\d{1,6}:")),
    (
        "code",
        re.compile(r".*[;{}]\s*$|\s*(?:def|class|import|from|func|return|if|for|const|let|var|fn|pub|#include)\b"),
    ),
    ("list of files", re.compile(r"[dlrwx-]{10}\s|\S*/\S*$|[\w.-]+\.\w{1,5}$")),
)
_ERROR: Final = re.compile(
    r"^[^\S\n]*((?:\w+\.)*\w*(?:Error|Exception|Panic|Failure)\b:?.{0,120}|panic: .{0,120}|error: .{0,120})",
    re.MULTILINE,
)
_SHELL: Final = re.compile(r"bash|shell|exec|terminal|command|run", re.IGNORECASE)
_CLAUSE: Final = re.compile(r"[,;:.!?(，、；：。！？（]")  # noqa: RUF001 - the full-width forms are meant
_UNSAFE: Final = re.compile(r"[\[\]\s]+")


def tool_names(events: Iterable[ThreadEvent]) -> dict[str, str]:
    """The names of the tools that the events call, by the ids of the calls."""
    return {call.id: call.name for event in events for call in event.message.tool_calls}


def named(event: ThreadEvent, tools: Mapping[str, str]) -> ThreadEvent:
    """The event, a tool's result with the name of its tool: what says best what is in it."""
    message = event.message
    tool = tools.get(message.tool_call_id or "")
    if message.role is not Role.TOOL or message.name is not None or tool is None:
        return event
    return event.replace(message=message.replace(name=tool))


def label_of(message: Message, tokens: int) -> str:
    """The label of a message of so many tokens; one line, without square brackets."""
    text = message.text
    kind = _kind(message, text)
    about = _about(text, kind, min(_MAX_NAMES, tokens // _TOKENS_PER_NAME))
    label = f"{kind}, {tokens:,} tokens" + (f": {about}" if about else "")
    label = _UNSAFE.sub(" ", label).strip()
    return label if len(label) <= MAX_LABEL_CHARS else f"{label[: MAX_LABEL_CHARS - 1].rstrip()}…"


def _kind(message: Message, text: str) -> str:
    if not text.strip():
        return _kind_of_parts(message)
    lines = [line for line in islice(_lines(text), _SAMPLE_LINES) if line.strip()]
    for kind, pattern in _KINDS:
        if any(pattern.search(line) for line in lines):
            return kind
    if (format := _format(text)) is not None:
        return format
    for kind, pattern in _LINE_KINDS:
        if len(lines) > 2 and sum(pattern.match(line) is not None for line in lines) > len(lines) * _MOST:  # noqa: PLR2004
            return kind
    if message.name and _SHELL.search(message.name):
        return "shell output"
    if message.role is Role.TOOL:
        return f"result of {message.name}" if message.name else "tool result"
    return f"{message.role.value} message"


def _format(text: str) -> str | None:
    """What the whole text is written in, where that shows."""
    if "```" in text:
        return "code block"
    begins = text.lstrip()[:15].lower()
    if begins.startswith(("{", "[")) and _is_json(text):
        return "JSON"
    return "web page" if begins.startswith(("<!doctype", "<html")) else None


def _kind_of_parts(message: Message) -> str:
    parts = [] if isinstance(message.content, str) else message.content
    pictures = sum(isinstance(part, ImagePart) for part in parts)
    files = [part for part in parts if isinstance(part, FilePart)]
    if files:
        return f"file {files[0].name}" if len(files) == 1 and files[0].name else f"{len(files)} files"
    return ("picture" if pictures == 1 else f"{pictures} pictures") if pictures else f"{message.role.value} message"


def _is_json(text: str) -> bool:
    if len(text) > _LOOKED_AT:
        return text.rstrip()[-1:] in ("}", "]")
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _about(text: str, kind: str, most: int) -> str:
    """The error, how it begins, and at most so many of the names that it mentions most."""
    looked_at = text[:_LOOKED_AT]
    names = _most_named(looked_at, {FactKind.PATH, FactKind.LINK}, most)
    if kind == "error trace":
        errors = _ERROR.findall(looked_at)
        return ", ".join([*(_short(error) for error in errors[-1:]), *names])
    begins = _first_clause(looked_at)
    names += _most_named(looked_at, {FactKind.IDENTIFIER, FactKind.NAME}, max(0, most - len(names) - 1))
    named = ", ".join(name for name in names if name not in begins)
    return "; ".join(each for each in (begins, named) if each)


def _first_clause(text: str) -> str:
    """At most eight words of the first line that says something."""
    for sentence in islice(sentences(text), 20):
        if sum(character.isalpha() for character in sentence) * 2 > len(sentence):
            clause = next((part for part in _CLAUSE.split(sentence) if len(part.strip()) >= _SIMPLE_CLAUSE), sentence)
            return _short(clause)
    return ""


def _short(text: str) -> str:
    words = text.split()
    cut = " ".join(words[:_MAX_WORDS])
    return cut if len(cut) <= 80 else f"{cut[:79].rstrip()}…"  # noqa: PLR2004 - of scripts without spaces


def _most_named(text: str, kinds: set[FactKind], most: int) -> list[str]:
    counted: Counter[Fact] = Counter(fact for fact in facts_of(text) if fact.kind in kinds)
    return [fact.text for fact, _ in counted.most_common(most) if len(fact.text) <= _MAX_NAME_CHARS]


def _lines(text: str) -> Iterator[str]:
    """The lines, cut to what their kind shows; without a copy of the whole text."""
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start : min(end, start + 400)]
        start = end + 1

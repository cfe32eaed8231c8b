"""Messages as a summariser reads them: words only, tool results shortened, in pieces that fit its window."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from lamina.conversation.extractive import extract
from lamina.domain.facts import paths_of
from lamina.domain.message import FilePart, ImagePart, Message, OpaquePart, ReasoningPart, Role, TextPart
from lamina.domain.message_size import Count

__all__ = ["document_text", "files_in_results", "packed", "pieces", "shortened", "speech", "transcript_line"]

_RESULT_CHARS: Final = 2_000
"""Of a tool's result, a file's text or a call's arguments: enough for what they are about, not a log file of it."""
_HEAD_SHARE: Final = 0.7
_CHARS_PER_TOKEN: Final = 32
"""More than any text of words has: what is longer than so many is cut before it is counted."""


def speech(message: Message) -> str:
    """What the message says and does, in words: no base64, no thoughts; results, files and arguments shortened."""
    content = message.content
    said = [content] if isinstance(content, str) else [_part(part) for part in content]
    if message.role is Role.TOOL:
        said = [_abridged(text) for text in said]
    said += [f"[calls {call.name} {_abridged(call.arguments)}]" for call in message.tool_calls]
    return "\n".join(text for text in said if text.strip())


def transcript_line(message: Message) -> str:
    """`number role: text`; its further lines are indented, so that no text can pass for another message."""
    speaker = message.role.value if not message.name else f"{message.role.value} ({message.name})"
    return "\n  ".join(f"{message.index} {speaker}: {speech(message)}".splitlines())


def files_in_results(messages: Iterable[Message]) -> Counter[str]:
    """How often each path is named in what tools gave, of which only little is picked from otherwise."""
    results = (message.text for message in messages if message.role is Role.TOOL)
    return Counter(path for text in results for path in paths_of(text))


def document_text(message: Message) -> str:
    """The texts of files in the message: words that nobody in the conversation said."""
    if isinstance(message.content, str):
        return ""
    return "\n".join(part.text for part in message.content if isinstance(part, FilePart) and part.text)


def pieces(lines: Sequence[str], *, room: int, most: int, count: Count) -> list[str]:
    """The lines in order, in at most `most` pieces of at most `room` tokens each.

    Where they are too many for that, extracts stand for them.
    """
    total = sum(count(line) + 1 for line in lines)
    # Two neighbours are more than one room together, so this many tokens never make more than `most` pieces.
    whole = room if most == 1 else room * (most - 1) // 2
    if total > max(room, whole):
        lines = extract(lines, max_tokens=whole * 9 // 10, count=count).splitlines()
    return list(packed((part for line in lines for part in _parts(line, room - 1, count)), room, count))[:most]


def packed(parts: Iterable[str], room: int, count: Count) -> Iterator[str]:
    """The parts in order, a line each, in pieces of at most `room` tokens; a part above that is a piece of its own."""
    gathered: list[str] = []
    used = 0
    for part in parts:
        size = count(part) + 1
        if gathered and used + size > room:
            yield "\n".join(gathered)
            gathered, used = [], 0
        gathered.append(part)
        used += size
    if gathered:
        yield "\n".join(gathered)


def shortened(text: str, max_tokens: int, count: Count) -> str:
    """The text's beginning, to the end of a sentence or at least a word, in at most so many tokens."""
    text = text[: max(max_tokens, 1) * _CHARS_PER_TOKEN]
    if count(text) <= max_tokens:
        return text
    end = bisect.bisect_left(range(len(text)), max_tokens, key=lambda length: count(f"{text[:length]}…"))
    while end and count(f"{text[:end]}…") > max_tokens:
        end -= 1
    kept = text[:end]
    for marks in ((". ", "! ", "? ", "\n", "。", "\uff01", "\uff1f"), (" ",)):
        border = max(kept.rfind(mark) + len(mark) for mark in marks)
        if border > len(kept) // 2:
            kept = kept[:border]
            break
    return f"{kept.rstrip()}…" if kept.strip() else ""


def _part(part: object) -> str:
    match part:
        case TextPart():
            return part.text
        case ImagePart():
            return "[picture]"
        case FilePart():
            name = f"[file {part.name}]" if part.name else "[file]"
            return f"{name} {_abridged(part.text)}" if part.text else name
        case OpaquePart():
            return f"[{part.kind}]"
        case ReasoningPart():
            return ""
    return ""


def _abridged(text: str) -> str:
    if len(text) <= _RESULT_CHARS:
        return text
    head = int(_RESULT_CHARS * _HEAD_SHARE)
    tail = _RESULT_CHARS - head
    return f"{text[:head]} [… {len(text) - _RESULT_CHARS} characters …] {text[-tail:]}"


def _parts(line: str, room: int, count: Count) -> list[str]:
    """The line, taken apart where it alone is more than one room."""
    if count(line) <= room:
        return [line]
    if len(line) == 1:
        return []
    middle = len(line) // 2
    border = line.rfind(" ", middle // 2, middle)
    cut = border if border > 0 else middle
    return [*_parts(line[:cut], room, count), *_parts(line[cut:], room, count)]

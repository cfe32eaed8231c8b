"""Reads what was rendered as its most gullible reader would, and finds what does not belong there."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator

_MARK = re.compile(r"<(?P<end>/?)(?P<name>[a-z_]+)(?P<labels>(?: [a-z_]+=\"[^\"<>\n]*\")*)(?P<empty>/?)>")
_LABEL = re.compile(r' ([a-z_]+)="([^"]*)"')
_HIDDEN_KINDS = {"Cc", "Cf", "Cs"}
_JOINERS = "\u200c\u200d"
_CHAT = re.compile(r"\[/?(?:INST|SYS)\]|\[(?:system|assistant|user)\]\(#", re.IGNORECASE)
_TURN = re.compile(
    r"^[\s>#*_\[(-]*(?:system|developer|assistant|human|user|tool|function)(?: prompt)?[\s*_\])]*[:\uff1a]"
    r"|^\s*#+\s*(?:instruction|response)\s*:",
    re.IGNORECASE,
)
_LIKE_TAG = re.compile(
    r"[\u02c2\u1438\u16b2\u226a\u226e\u227a\u276e\u2770\u27e8\u27ea\u2991\u29fc\u3008\u300a\u2039\uff1c\ufe64]\s*/?\s*"
    r"(?:context|memory|policies)",
    re.IGNORECASE,
)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


def tree_of(text: str) -> list[object]:
    """The marks of the text as nested lists: name, names of labels, trust, and what is inside.

    A mark that no other opened or closed is told by an item of its own, so that it never goes unnoticed.
    """
    root: list[object] = []
    open_ones: list[tuple[str, list[object]]] = [("", root)]
    for match in _MARK.finditer(text):
        name, labels = match["name"], _LABEL.findall(match["labels"])
        inside: list[object] = []
        item = [name, [label for label, _ in labels], dict(labels).get("trust"), inside]
        if match["end"]:
            if open_ones[-1][0] == name:
                open_ones.pop()
            else:
                open_ones[-1][1].append(f"stray end of {name}")
            continue
        open_ones[-1][1].append(item)
        if not match["empty"]:
            open_ones.append((name, inside))
    root.extend(f"left open: {name}" for name, _ in open_ones[1:])
    return root


def faults_in(text: str) -> Iterator[str]:
    """What a text that was rendered must not hold, whatever was stored."""
    if "<" in _MARK.sub("", text):
        yield "an angle that begins no mark of ours"
    yield from faults_between_marks(_MARK.sub("\n", text))
    for piece in _MARK.split(text)[5::6]:
        if _leaves_fence_open(piece):
            yield "a fence that is left open"


def faults_between_marks(text: str) -> Iterator[str]:
    """The same of a text that has no marks of ours."""
    if _LIKE_TAG.search(text):
        yield "what looks like a mark"
    if _CHAT.search(text) or "<|" in text:
        yield "a mark of a chat template"
    for line in re.split(
        r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", "".join(each for each in text if not _is_unseen(each))
    ):
        if _TURN.match(line):
            yield "a line that passes for a turn"
    if any(_is_unseen(each) for each in text):
        yield "a character that hides or turns text"
    if re.search(r"[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2}", text):
        yield "a hidden message of variation selectors"


def json_faults_in(text: str) -> Iterator[str]:
    """What a JSON text that a model reads must not hold beside valid JSON."""
    json.loads(text)
    if "<" in text or "\uff1c" in text or "\ufe64" in text:
        yield "an angle"
    if _CHAT.search(text):
        yield "a mark of a chat template"
    if "\n" in text:
        yield "a second line"
    if any(_is_unseen(each) or each in "\x85\u2028\u2029" for each in text):
        yield "a character that hides or turns text"


def _is_unseen(character: str) -> bool:
    if character in "\n\t":
        return False
    return unicodedata.category(character) in _HIDDEN_KINDS and character not in _JOINERS


def _leaves_fence_open(text: str) -> bool:
    opened = ""
    for line in text.split("\n"):
        match = _FENCE.fullmatch(line)
        if match is None:
            continue
        if not opened:
            opened = match[1] if match[1][0] == "~" or "`" not in match[2] else ""
        elif match[1][0] == opened[0] and len(match[1]) >= len(opened) and not match[2].strip():
            opened = ""
    return bool(opened)

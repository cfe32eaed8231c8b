"""Text from elsewhere, made fit to stand inside marks of ours: nothing in it can end them or pass for others.

Escaping is for reading by a model, not for restoring: what is stored stays as it is.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = ["fenced", "label", "quoted_json"]

MAX_LABEL_CHARS: Final = 200

_ANGLES: Final = re.compile("[<\uff1c\ufe64]")
_LINE_ENDS: Final = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e007f]"
)
"""Controls, directions and characters of no width; the joiners U+200C and U+200D belong to scripts and emoji."""
_SELECTORS: Final = re.compile("([\ufe00-\ufe0f\U000e0100-\U000e01ef])[\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
"""A character has one variation selector at most: those behind it are a message that nobody sees."""
_CHAT_MARK: Final = re.compile(
    r"\[(?=/?(?:INST|SYS|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]|(?:system|assistant|user)\]\(#)",
    re.IGNORECASE,
)
_QUOTED_IN_JSON: Final = re.compile(
    rf"[<\uff1c\ufe64\x85\u2028\u2029]|{_UNSEEN.pattern}|{_SELECTORS.pattern}|{_CHAT_MARK.pattern}", re.IGNORECASE
)
_ROLE_LINE: Final = re.compile(
    r"^(?P<role>[ \t>#*_\[(-]*(?:system|developer|assistant|human|user|tool|function)"
    r"(?:[ \t]+(?:prompt|message|instructions?|note|override))?"
    r"|[ \t>]*#+[ \t]*(?:instructions?|input|response))(?P<rest>[ \t*_\])]*)[:\uff1a]",
    re.MULTILINE | re.IGNORECASE,
)
"""A line that begins as a turn of a conversation does where turns are told apart by words alone."""
_MARK_NAMES: Final = (
    "context|profile|preferences|policies|memor(?:y|ies)|packs?|pack_memor(?:y|ies)|documents?|chunk|retrieved|item|"
    "conversation|conversation_summary|message|goal|reasoning|file|image|part|tool_calls?|tool_results?|"
    "system|user|assistant|im_start|im_end"
)
_LIKE_ANGLES: Final = re.compile(
    rf"[\u02c2\u1438\u16b2\u226a\u226e\u227a\u276e\u2770\u27e8\u27ea\u2991\u29fc\U0001d236]"
    rf"(?=[ \t]*[/\u2044\u2215\uff0f|\uff5c]|(?:{_MARK_NAMES})\b)"
    rf"|[\u00ab\u2039\u2329\u3008\u300a](?=[ \t]*[/\u2044\u2215\uff0f|\uff5c][ \t]*(?:{_MARK_NAMES})\b)",
    re.IGNORECASE,
)
"""What looks like `<` and stands where a mark of ours would begin; elsewhere these are letters, quotes or signs."""
_SPECIAL: Final = re.compile("[^\t\n !-;=-Z\\\\-_a-}]")
"""Whatever else than plain ASCII without `<`, `[`, a backtick or a tilde: what a fence may have to change."""
_CODE_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)


def fenced(text: str) -> str:
    """The text as it may stand between two marks of ours.

    `<` becomes `&lt;` (its lookalikes of full width too, and others where a mark of ours could begin), the colon of
    a line that begins as a turn (`System:`) becomes `&#58;`, line ends become one kind, invisible characters
    that could hide or turn text around fall away, and a Markdown fence left open is closed.
    """
    if not _SPECIAL.search(text):
        return _without_turns(text).strip("\n")
    plain = _UNSEEN.sub("", _LINE_ENDS.sub("\n", text))
    plain = _ANGLES.sub("&lt;", _SELECTORS.sub(r"\1", plain))
    plain = _LIKE_ANGLES.sub(lambda match: f"&#x{ord(match[0]):x};", plain)
    return _without_turns(_CHAT_MARK.sub("&#91;", _with_fence_closed(plain))).strip("\n")


def quoted_json(text: str) -> str:
    """The JSON text, where what could pass for a mark, hide or turn text around is spelled as JSON's own escapes.

    Whoever parses it gets the same values; whoever reads it as text sees each such character by its number.
    """
    return _QUOTED_IN_JSON.sub(_by_number, text)


def label(text: str) -> str:
    """The text on one line, as the value of an attribute; more than 200 characters are cut, with an ellipsis."""
    plain = " ".join(fenced(text[: 4 * MAX_LABEL_CHARS]).split())
    if len(plain) > MAX_LABEL_CHARS:
        plain = f"{plain[: MAX_LABEL_CHARS - 1]}…"
    return unicodedata.normalize("NFC", plain).replace('"', "&quot;").replace(">", "&gt;")


def _by_number(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _without_turns(text: str) -> str:
    return _ROLE_LINE.sub(r"\g<role>\g<rest>&#58;", text)


def _with_fence_closed(text: str) -> str:
    """The text, and at its end the fence that closes the block of code it leaves open."""
    opened: str | None = None
    for match in _CODE_FENCE.finditer(text):
        marks, rest = match[1], match[2]
        if opened is None:
            if marks[0] == "~" or "`" not in rest:
                opened = marks
        elif marks[0] == opened[0] and len(marks) >= len(opened) and not rest.strip():
            opened = None
    if opened is None:
        return text
    body = text.rstrip("\n")
    return f"{body}\n{opened}"

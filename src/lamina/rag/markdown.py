"""The blocks of a Markdown text: headings, paragraphs, lists, tables, code, quotes.

Read line by line, each line a bounded number of times. It follows CommonMark as far as chunking needs:
what is a heading, and what must not be parted. Plain text comes out as paragraphs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from lamina.rag.units import Kind, Line, Unit

__all__ = ["blocks", "indent_of", "item_offset", "quote_offset"]

MAX_DEPTH: Final = 8
"""Quotes and list items nested deeper are taken as text."""

CODE_INDENT: Final = 4
_FENCE: Final = re.compile(r"(`{3,}+|~{3,}+)")
_HEADING: Final = re.compile(r"(#{1,6})(?:[ \t]|\Z)")
_UNDERLINE: Final = re.compile(r"(?:=++|-++)[ \t]*+\Z")
_RULE: Final = re.compile(r"(?:\*[ \t]*+){3,}+\Z|(?:-[ \t]*+){3,}+\Z|(?:_[ \t]*+){3,}+\Z")
_ITEM: Final = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?=[ \t]|\Z)")
_DELIMITERS: Final = re.compile(r"\|?+[ \t]*+:?+-++:?+[ \t]*+(?:\|[ \t]*+:?+-++:?+[ \t]*+)*+\|?+[ \t]*+\Z")
_RAW: Final = re.compile(r"<(?:(pre|script|style|textarea)(?=[\s>]|\Z)|(!--))", re.IGNORECASE)
_ATTRIBUTES: Final = re.compile(r"\{[ \t]*#[^{}]*\}\Z")
_PIPE: Final = re.compile(r"(?<!\\)\|")
_BLOCK_STARTS: Final = frozenset("`~#<>*-_+")

MAX_TITLE: Final = 200
"""Characters of a title that are kept."""
MAX_FRONT_MATTER: Final = 65_536
"""Characters in which front matter must be closed; else its first mark is a rule."""
_FRONT_MATTER: Final = re.compile(r"(---|\+\+\+)[ \t]*+(?:\r\n|\r|\n)(?=[ \t]*+(?:#|[\w\"'\[-][^\r\n:=]*+[:=]|\[))")
_CLOSING: Final = {
    "---": re.compile(r"(?<=[\r\n])(?:---|\.\.\.)[ \t]*+(?=[\r\n]|\Z)"),
    "+++": re.compile(r"(?<=[\r\n])\+\+\+[ \t]*+(?=[\r\n]|\Z)"),
}


def blocks(text: str, lines: Iterable[Line], *, depth: int = 0) -> Iterator[Unit]:
    """The blocks that the lines make up, in order and without gaps. Sizes and paths are not filled in.

    Of lines inside a container (`depth` above 0) only what the container leaves of them counts.
    """
    yield from _Scanner(text, lines, depth).blocks()


def indent_of(body: str) -> int:
    """How many columns the line is indented by; a tab goes to the next multiple of four."""
    columns = 0
    for character in body:
        if character == " ":
            columns += 1
        elif character == "\t":
            columns += 4 - columns % 4
        elif character not in "\f\v":
            break
    return columns


def item_offset(body: str) -> int | None:
    """How many characters of a list item's first line are before its content; None if it is no item."""
    stripped = body.lstrip()
    marker = _ITEM.match(stripped)
    if marker is None or _RULE.match(stripped):
        return None
    begin = len(body) - len(stripped) + marker.end()
    spaces = len(body[begin : begin + CODE_INDENT + 1]) - len(body[begin : begin + CODE_INDENT + 1].lstrip(" \t"))
    return begin + (spaces if 0 < spaces <= CODE_INDENT else min(1, len(body) - begin))


def quote_offset(body: str) -> int | None:
    """How many characters of a quote's line are before its content; None if the line is no quote's."""
    begin = len(body) - len(body.lstrip())
    if body[begin : begin + 1] != ">":
        return None
    return begin + 1 + (body[begin + 1 : begin + 2] in {" ", "\t"})


class _Scanner:
    """Walks over the lines, seeing the current one and the next."""

    def __init__(self, text: str, lines: Iterable[Line], depth: int) -> None:
        self._text = text
        self._lines = iter(lines)
        self._depth = depth
        self._ahead: Line | None = None
        self._next_body = ""
        self._current: Line | None = None
        self._body = ""
        self._stripped = ""
        self._indent = 0
        self._taken: list[Line] = []
        self._step()
        self._step()

    def blocks(self) -> Iterator[Unit]:
        end = self._front_matter_end()
        if end is not None:
            yield self._front_matter(end)
        while self._current is not None:
            yield from self._block()

    def _step(self) -> None:
        self._current, self._body = self._ahead, self._next_body
        self._stripped = self._body.lstrip()
        self._indent = indent_of(self._body)
        self._ahead = next(self._lines, None)
        self._next_body = "" if self._ahead is None else self._text[self._ahead.at : self._ahead.stop]

    def _take(self) -> None:
        if self._current is not None:
            self._taken.append(self._current)
        self._step()

    def _made(self, kind: Kind, *, title: str = "", level: int = 0, header: tuple[int, int] | None = None) -> Unit:
        """A unit of the lines taken since the last one."""
        taken, self._taken = self._taken, []
        kept = taken if self._depth else None
        start, end = taken[0].start, taken[-1].end
        return Unit(kind, start, end, title=title, level=level, header=header, lines=kept, depth=self._depth)

    @property
    def _is_blank(self) -> bool:
        return not self._stripped

    def _block(self) -> Iterator[Unit]:
        if self._is_blank:
            yield self._blank()
        elif _FENCE.match(self._stripped) and self._is_fence():
            yield self._fence()
        elif self._indent >= CODE_INDENT:
            yield from self._indented_code()
        elif _HEADING.match(self._stripped):
            yield self._heading()
        elif raw := _RAW.match(self._stripped):
            yield self._raw(f"</{raw[1].lower()}" if raw[1] else "-->")
        elif self._depth < MAX_DEPTH and self._stripped[0] == ">":
            yield self._quote()
        elif _RULE.match(self._stripped):
            self._take()
            yield self._made(Kind.PARAGRAPH)
        elif self._depth < MAX_DEPTH and _ITEM.match(self._stripped):
            yield from self._list()
        elif self._is_table():
            yield self._table()
        else:
            yield self._paragraph()

    def _blank(self) -> Unit:
        while self._current is not None and self._is_blank:
            self._take()
        return self._made(Kind.BLANK)

    def _front_matter_end(self) -> int | None:
        """Where the line is that closes the front matter; None if the text begins with none."""
        opening = _FRONT_MATTER.match(self._text) if self._current is not None and not self._current.start else None
        if self._depth or opening is None:
            return None
        closing = _CLOSING[opening[1]].search(self._text, opening.end(), opening.end() + MAX_FRONT_MATTER)
        return None if closing is None else closing.start()

    def _front_matter(self, end: int) -> Unit:
        while self._current is not None and self._current.start <= end:
            self._take()
        return self._made(Kind.RAW)

    def _is_fence(self) -> bool:
        mark = _FENCE.match(self._stripped)
        return mark is not None and not (mark[0][0] == "`" and "`" in self._stripped[mark.end() :])

    def _fence(self) -> Unit:
        """Up to the closing fence, the end, or, if it is indented as a list's content is, where that ends."""
        opening = _FENCE.match(self._stripped)
        mark = "" if opening is None else opening[0]
        indent = self._indent
        self._take()
        while self._current is not None:
            if indent >= CODE_INDENT and not self._is_blank and self._indent < indent:
                break
            closing = _FENCE.match(self._stripped)
            is_end = (
                closing is not None
                and closing[0].startswith(mark)
                and not self._stripped[closing.end() :].strip()
                and (self._indent < CODE_INDENT or indent >= CODE_INDENT)
            )
            self._take()
            if is_end:
                break
        return self._made(Kind.CODE)

    def _indented_code(self) -> Iterator[Unit]:
        blank = 0
        while self._current is not None and (self._is_blank or self._indent >= CODE_INDENT):
            if _FENCE.match(self._stripped) and self._is_fence():
                break
            blank = blank + 1 if self._is_blank else 0
            self._take()
        yield from self._without_blanks(Kind.CODE, blank)

    def _without_blanks(self, kind: Kind, blank: int) -> Iterator[Unit]:
        """The unit of what was taken, and one of its blank lines at the end."""
        if blank:
            trailing, self._taken = self._taken[-blank:], self._taken[:-blank]
            yield self._made(kind)
            self._taken = trailing
            yield self._made(Kind.BLANK)
        else:
            yield self._made(kind)

    def _heading(self) -> Unit:
        mark = _HEADING.match(self._stripped)
        level = 0 if mark is None else len(mark[1])
        title = _plain_title(self._stripped[level:])
        self._take()
        return self._made(Kind.HEADING, title=title, level=level)

    def _raw(self, closing: str) -> Unit:
        while self._current is not None:
            is_end = closing in self._body.lower()
            self._take()
            if is_end:
                break
        return self._made(Kind.RAW)

    def _quote(self) -> Unit:
        while self._current is not None and self._stripped.startswith(">"):
            self._take()
        return self._made(Kind.QUOTE)

    def _list(self) -> Iterator[Unit]:
        first = self._indent
        content = item_offset(self._body) or 0
        self._take()
        blank = 0
        while self._current is not None:
            if self._is_blank:
                blank += 1
                self._take()
                continue
            indent = self._indent
            offset = item_offset(self._body) if indent >= first else None
            if offset is not None and indent < content + CODE_INDENT:
                content = offset if indent < content else content
            elif indent < content and (blank or self._starts_block()):
                break
            blank = 0
            self._take()
        yield from self._without_blanks(Kind.LIST, blank)

    def _starts_block(self) -> bool:
        """Whether the current line is no mere continuation of the paragraph before it."""
        stripped = self._stripped
        if stripped[0] not in _BLOCK_STARTS and not stripped[0].isdecimal():
            return False
        return bool(
            (_FENCE.match(stripped) and self._is_fence())
            or _HEADING.match(stripped)
            or _RAW.match(stripped)
            or (stripped[0] == ">" and self._depth < MAX_DEPTH)
            or _RULE.match(stripped)
            or (self._depth < MAX_DEPTH and _interrupting_item(stripped))
        )

    def _is_table(self) -> bool:
        is_underline = "|" not in self._next_body and ":" not in self._next_body
        if "|" not in self._body or "-" not in self._next_body or is_underline:
            return False
        return _DELIMITERS.match(self._next_body.lstrip()) is not None and _cells(self._body) == _cells(self._next_body)

    def _table(self) -> Unit:
        start = self._current.start if self._current is not None else 0
        self._take()
        end = self._current.end if self._current is not None else start
        self._take()
        while self._current is not None and not self._is_blank and not self._starts_block():
            self._take()
        return self._made(Kind.TABLE, header=(start, end))

    def _paragraph(self) -> Unit:
        """A paragraph, or a heading if it is underlined."""
        self._take()
        while self._current is not None and not self._is_blank:
            is_shallow = self._indent < CODE_INDENT
            if is_shallow and _UNDERLINE.match(self._stripped):
                level = 1 if self._stripped[0] == "=" else 2
                title = " ".join(self._text[line.at : line.stop].strip() for line in self._taken)
                self._take()
                return self._made(Kind.HEADING, title=_plain_title(title), level=level)
            # A deep fence begins here all the same: components in MDX indent what they hold.
            if self._is_fence() or (is_shallow and self._starts_block()) or self._is_table():
                break
            self._take()
        return self._made(Kind.PARAGRAPH)


def _interrupting_item(stripped: str) -> bool:
    """Whether a list begins here that may do so inside a paragraph: an item that is not empty, or numbered 1."""
    marker = _ITEM.match(stripped)
    if marker is None or not stripped[marker.end() :].strip():
        return False
    return not marker[0][0].isdecimal() or marker[0][:-1] == "1"


def _plain_title(title: str) -> str:
    """Without closing marks and attributes, on one line, and not longer than a title should be."""
    plain = title.strip()
    without_marks = plain.rstrip("#")
    if without_marks != plain and (not without_marks or without_marks[-1].isspace()):
        plain = without_marks.rstrip()
    plain = _ATTRIBUTES.sub("", plain).strip() if plain.endswith("}") else plain
    return " ".join(plain[: MAX_TITLE * 2].split())[:MAX_TITLE]


def _cells(row: str) -> int:
    inner = row.strip().removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    return len(_PIPE.findall(inner)) + 1

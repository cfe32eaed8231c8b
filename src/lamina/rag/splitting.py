"""The next finer split of a unit that is too large for a chunk, down to pieces that fit by force."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from lamina.rag.cutting import pieces
from lamina.rag.markdown import blocks, indent_of, item_offset, quote_offset
from lamina.rag.sentences import sentence_spans
from lamina.rag.units import Count, Kind, Line, Unit, lines_of, measure

__all__ = ["Splitter"]


@dataclass(frozen=True, slots=True)
class Splitter:
    """Takes units of one text apart. `piece` is how many tokens a cut by force leaves at most."""

    text: str
    size: int
    piece: int
    count: Count

    def finer(self, unit: Unit) -> list[Unit]:
        """What the unit is made of, in order and without gaps; each part is finer or smaller than the unit."""
        if unit.kind is Kind.SECTION:
            return unit.parts
        return [self._filled(part, unit) for part in _WAYS[unit.kind](self, unit)]

    def _filled(self, part: Unit, whole: Unit) -> Unit:
        part.path = whole.full_path if whole.kind is not Kind.HEADING else whole.path
        if part.header is None and whole.kind in {Kind.ROW, Kind.LINE, Kind.PIECE}:
            part.header = whole.header
        return measure(self.text, part, self.size, self.count)

    def _lines(self, unit: Unit) -> Iterable[Line]:
        return lines_of(self.text, unit.start, unit.end) if unit.lines is None else unit.lines

    def _body(self, line: Line) -> str:
        return self.text[line.at : line.stop]

    def items(self, unit: Unit) -> Iterator[Unit]:
        """The items of a list's first level, each with what stands under it."""
        taken: list[Line] = []
        content = 0
        for line in self._lines(unit):
            body = self._body(line)
            offset = item_offset(body)
            if offset is not None and indent_of(body) < max(content, 1):
                if taken:
                    yield _item(taken, unit.depth)
                taken = []
            if not taken:
                content = offset or 0
            taken.append(line)
        if taken:
            yield _item(taken, unit.depth)

    def inside_item(self, unit: Unit) -> Iterator[Unit]:
        """The blocks in a list item."""
        lines = list(self._lines(unit))
        offset = item_offset(self._body(lines[0])) or 0
        inner = [lines[0]._replace(at=lines[0].at + offset)]
        for line in lines[1:]:
            body = self._body(line)
            spaces = len(body) - len(body.lstrip(" \t"))
            inner.append(line._replace(at=line.at + min(spaces, offset)))
        return blocks(self.text, inner, depth=unit.depth + 1)

    def inside_quote(self, unit: Unit) -> Iterator[Unit]:
        """The blocks in a quote."""
        inner = (line._replace(at=line.at + (quote_offset(self._body(line)) or 0)) for line in self._lines(unit))
        return blocks(self.text, inner, depth=unit.depth + 1)

    def rows(self, unit: Unit) -> Iterator[Unit]:
        """The rows of a table; the first one has the header with it."""
        lines = list(self._lines(unit))
        header = (lines[0].start, lines[1].end)
        yield Unit(Kind.ROW, header[0], lines[min(2, len(lines) - 1)].end, header=header)
        for line in lines[3:]:
            yield Unit(Kind.ROW, line.start, line.end, header=header)

    def single_lines(self, unit: Unit) -> Iterator[Unit]:
        """Line by line."""
        return (Unit(Kind.LINE, line.start, line.end) for line in self._lines(unit))

    def sentences(self, unit: Unit) -> Iterator[Unit]:
        """Sentence by sentence."""
        return (Unit(Kind.SENTENCE, start, end) for start, end in sentence_spans(self.text, unit.start, unit.end))

    def lines_or_pieces(self, unit: Unit) -> Iterator[Unit]:
        """Line by line if there are several, as in a table of values without a full stop; else by force."""
        lines = list(lines_of(self.text, unit.start, unit.end))
        if len(lines) > 1:
            return (Unit(Kind.LINE, line.start, line.end) for line in lines)
        return self.by_force(unit)

    def by_force(self, unit: Unit) -> Iterator[Unit]:
        """By tokens."""
        spans = pieces(self.text, unit.start, unit.end, size=self.piece, count=self.count)
        return (Unit(Kind.PIECE, start, end) for start, end in spans)


def _item(lines: list[Line], depth: int) -> Unit:
    return Unit(Kind.ITEM, lines[0].start, lines[-1].end, lines=lines, depth=depth)


_WAYS: dict[Kind, Callable[[Splitter, Unit], Iterator[Unit]]] = {
    Kind.HEADING: Splitter.lines_or_pieces,
    Kind.LIST: Splitter.items,
    Kind.ITEM: Splitter.inside_item,
    Kind.QUOTE: Splitter.inside_quote,
    Kind.TABLE: Splitter.rows,
    Kind.CODE: Splitter.single_lines,
    Kind.RAW: Splitter.single_lines,
    Kind.PARAGRAPH: Splitter.sentences,
    Kind.ROW: Splitter.lines_or_pieces,
    Kind.SENTENCE: Splitter.lines_or_pieces,
    Kind.LINE: Splitter.by_force,
    Kind.PIECE: Splitter.by_force,
    Kind.BLANK: Splitter.by_force,
}

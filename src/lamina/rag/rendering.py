"""Retrieved chunks as text for a prompt."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from lamina.domain.document import RagChunk
from lamina.domain.text_fencing import fenced, label

__all__ = ["render_chunks"]

_IMITATION: Final = re.compile(
    r"(?:^|(?<=[\r\v\f\x1c-\x1e\x85\u2028\u2029]))(?=[^\w\n\[]*\[[^\n]*\]\s*\(\s*score\b)",
    re.MULTILINE | re.IGNORECASE,
)
"""Where a line, of whatever kind of line end, begins as a block does, or so nearly that a reader would not mind."""


def render_chunks(chunks: Iterable[RagChunk]) -> str:
    """Blocks of `[source] (score 0.87)` and the text, with blank lines between them; empty if there are none.

    The titles that a chunk stands under follow the score, and a table's header is repeated. A line of a text
    that looks like the beginning of a block gets a backslash, so that no document can speak for another, and
    what could pass for a mark or a turn is escaped, as in a context.
    """
    return "\n\n".join(_block(chunk) for chunk in chunks)


def _block(chunk: RagChunk) -> str:
    source = label(chunk.source).replace("] (", "] \\(")
    titles = " > ".join(label(str(title)) for title in chunk.metadata.get("headers", ()))
    head = f"[{source}] (score {chunk.score:.2f})" + (f" {titles}" if titles else "")
    text = _IMITATION.sub(r"\\", fenced(chunk.text.strip()))
    return f"{head}\n{text}"

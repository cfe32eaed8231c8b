"""The tool by which an agent gets the original of a compacted message back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeAlias

from lamina.domain.message import Message
from lamina.domain.message_json import canonical_json, part_to_json
from lamina.domain.validation import check_whole_number

__all__ = ["ExpandTool", "Expandable", "make_expand_tool"]

PAGE_CHARS: Final = 20_000

ExpandTool: TypeAlias = Callable[[str, int], Awaitable[str]]


class Expandable(Protocol):
    """What gives originals: short-term memory, or the threads of a conversation manager."""

    async def expand(self, reference: str | int, session_id: str | None = None) -> Message:
        """The original of the message that this reference names."""
        ...


def make_expand_tool(memory: Expandable, session_id: str | None = None, *, page_chars: int = PAGE_CHARS) -> ExpandTool:
    """A function for an agent: it gives the original of a message of this one session, a page at a time.

    Its name, its docstring and its type hints are what a model is told of it.
    """
    check_whole_number("page_chars", page_chars, 1, 10_000_000)

    async def expand(reference: str, offset: int = 0) -> str:
        """Get the full original of a message that is shown as [COMPACTED: ...; expand #12].

        Args:
            reference: What stands after "expand", such as #12.
            offset: From which character on, for an original that is longer than one page.
        """
        check_whole_number("offset", offset, 0, 2**40)
        message = await memory.expand(reference, session_id=session_id)
        content = message.content
        text = message.text
        if not isinstance(content, str) and not text:
            text = "\n".join(canonical_json(part_to_json(part)) for part in content)
        page = text[offset : offset + page_chars]
        rest = len(text) - offset - len(page)
        return page if rest <= 0 else f"{page}\n[{rest} more characters: call again with offset={offset + len(page)}]"

    return expand

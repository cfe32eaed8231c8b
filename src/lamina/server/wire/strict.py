"""What the models of requests are made of: nothing unknown, no number made of text, no text that cannot be stored.

The patterns say in the description of the server what it takes, so that a client can know beforehand.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    StringConstraints,
    model_validator,
)
from pydantic import JsonValue as AnyJson

from lamina.domain.text import MAX_NAME_CHARS

__all__ = [
    "BY_VALUE",
    "Flag",
    "Integer",
    "JsonObject",
    "Limit",
    "Moment",
    "Name",
    "Rerank",
    "StrictBody",
    "Tag",
    "Text",
    "Unit",
]

MAX_INTEGER: Final = 2**63 - 1
MAX_LIMIT: Final = 100
MAX_TEXT_CHARS: Final = 1_000_000
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})
_CLASS_SYNTAX: Final = "\\]^-[&~|"


def _invisible() -> Iterator[str]:
    """Ranges of the characters that show nothing, as they stand in a class of a regular expression."""
    first: int | None = None
    for code in range(sys.maxunicode + 2):
        shown = code > sys.maxunicode or unicodedata.category(chr(code)) not in _INVISIBLE
        if not shown and first is None:
            first = code
        elif shown and first is not None:
            yield chr(first) if first == code - 1 else f"{chr(first)}-{chr(code - 1)}"
            first = None


def _visible_pattern() -> str:
    """Something that can be seen, and no NUL: as `lamina.domain.text.check_name` has it."""
    hidden = "".join(each for each in _invisible() if each not in _CLASS_SYNTAX)
    return f"^[^\x00]*[^{hidden}][^\x00]*$"


VISIBLE: Final = _visible_pattern()
NO_NUL: Final = "^[^\x00]*$"


class StrictBody(BaseModel):
    """The base of what a request may hold. What is unknown is refused by name, as is a wrong type.

    Numbers are finite, and neither texts nor booleans. An enum is `Annotated[Layer, BY_VALUE]`, an instant `Moment`.
    """

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _whole_numbers(cls, data: Any) -> Any:
        """JSON has one kind of number: 1.0 is the integer 1."""
        if not isinstance(data, dict):
            return data
        return {name: int(each) if _is_whole(each) else each for name, each in data.items()}


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer() and abs(value) <= MAX_INTEGER


BY_VALUE: Final = Strict(strict=False)
"""Marks an enum in a `StrictBody`: it is given by its value."""


def _only_text(value: Any) -> Any:
    if isinstance(value, str) and not value.lstrip("+-").replace(".", "", 1).isdigit():
        return value
    if isinstance(value, datetime):
        return value
    raise ValueError("must be an instant in ISO 8601, with its offset from UTC")


def _only_a_word(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return value == "true"
    raise ValueError("must be true or false")


Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_CHARS, pattern=VISIBLE)]
"""What identifies: an id, an owner, a namespace, a thread."""
Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT_CHARS, pattern=VISIBLE)]
"""What is said: content, a query, a goal. With something to be seen in it."""
Tag = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=VISIBLE)]
Limit = Annotated[int, Field(ge=1, le=MAX_LIMIT)]
"""How many results a request may ask for; also bounded by the server's settings."""
Integer = Annotated[int, Field(ge=-MAX_INTEGER - 1, le=MAX_INTEGER)]
"""What 64 bits hold."""
Unit = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
"""A share: a score, a relevance, a confidence."""
Rerank = Literal["cross-encoder", "none"]
"""Only what costs the server's own time: hosted rerankers are for its settings to choose."""
Moment = Annotated[AwareDatetime, BY_VALUE, BeforeValidator(_only_text)]
"""An instant in ISO 8601 with its offset; a number is none."""
Flag = Annotated[bool, BeforeValidator(_only_a_word)]
"""A switch in a query: `true` or `false`, and no other spelling."""


def _is_shallow(value: dict[str, Any]) -> dict[str, Any]:
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [
            below
            for each in level
            if isinstance(each, dict | list)
            for below in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return value
    raise ValueError(f"is nested more than {MAX_DEPTH} levels deep")


MAX_DEPTH: Final = 32
JsonObject = Annotated[dict[str, AnyJson], AfterValidator(_is_shallow)]
"""Metadata of the client's own: any JSON object that is not too deep."""

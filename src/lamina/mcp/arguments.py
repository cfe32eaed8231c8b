"""What the arguments of tools are made of: nothing unknown, nothing endless, and a sentence for what is wrong."""

from __future__ import annotations

import json
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic import JsonValue as AnyJson

from lamina.domain.text import MAX_NAME_CHARS, is_blank
from lamina.errors import InvalidInput
from lamina.mcp.schemas import plain_schema

__all__ = ["MAX_QUERY_CHARS", "MAX_TEXT_CHARS", "Arguments", "Id", "JsonObject", "Query", "Text", "Whole", "read"]

MAX_TEXT_CHARS: Final = 1_048_576
MAX_QUERY_CHARS: Final = 10_000
_MAX_DEPTH: Final = 32
_MOST_TOLD: Final = 3
"""Of what is wrong with one call, so much is told: a model mends the first things first."""


def _visible(value: str) -> str:
    if is_blank(value):
        raise ValueError("must have at least one visible character")
    return value


def _whole(value: Any) -> Any:
    """JSON has one kind of number: some clients write 8 as 8.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _shallow(value: dict[str, Any]) -> dict[str, Any]:
    level: list[Any] = [value]
    for _ in range(_MAX_DEPTH):
        level = [
            below
            for each in level
            if isinstance(each, dict | list)
            for below in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return value
    raise ValueError(f"is nested more than {_MAX_DEPTH} levels deep")


Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT_CHARS), AfterValidator(_visible)]
Query = Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARS), AfterValidator(_visible)]
Id = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)]
Whole = Annotated[int, BeforeValidator(_whole)]
JsonObject = Annotated[dict[str, AnyJson], AfterValidator(_shallow)]


class Arguments(BaseModel):
    """The base of what a tool takes. What is unknown is refused by name, as is a wrong type."""

    model_config = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True, populate_by_name=False
    )

    @model_validator(mode="before")
    @classmethod
    def _objects_out_of_text(cls, given: Any) -> Any:
        """Some clients send an object or a list as its JSON text; where no text is wanted, it is read."""
        if not isinstance(given, dict):
            return given
        wanting = {field.alias or name: field.annotation for name, field in cls.model_fields.items()}
        return {
            name: _parsed(value) if isinstance(value, str) and not _takes_text(wanting.get(name, str)) else value
            for name, value in given.items()
        }

    @classmethod
    def input_schema(cls) -> dict[str, Any]:
        """The JSON schema that clients are told."""
        return plain_schema(cls.model_json_schema(by_alias=True))


def read(kind: type[Arguments], given: Any) -> Any:
    """The arguments as the tool takes them.

    Raises:
        InvalidInput: something is missing, unknown, or of a wrong type or size; it names each and says what is wanted.
    """
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        known = ", ".join(field.alias or name for name, field in kind.model_fields.items()) or "no arguments"
        errors = error.errors(include_url=False, include_input=False)
        told = [_sentence(each) for each in sorted(errors, key=lambda each: each["type"] != "extra_forbidden")]
        problem = "; ".join(told[:_MOST_TOLD])
        raise InvalidInput("arguments", problem, f"The tool takes: {known}.") from None


def _sentence(error: Any) -> str:
    path = ".".join(str(part)[:100] for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"{path} is not known"
    if error["type"] == "missing":
        return f"{path} is missing"
    wrong = str(error["msg"]).removeprefix("Value error, ").removeprefix("Input ").rstrip(".")
    return f"{path}: {wrong}" if path else wrong


def _takes_text(annotation: Any) -> bool:
    """Whether a text may stand here as it is."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _takes_text(get_args(annotation)[0])
    if origin in {Union, UnionType}:
        return any(_takes_text(each) for each in get_args(annotation))
    return annotation in {str, Any} or origin is Literal


def _parsed(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text

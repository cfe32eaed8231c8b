"""An object of a JSON schema out of a language model, which may answer anything.

An answer is taken whole or not at all: one JSON object, bare or as the only thing in a code fence, that satisfies
the schema. Otherwise the model is told what is wrong, without its answer being repaired by guess, and asked again.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

from lamina.domain.text import clean
from lamina.errors import InvalidInput, ProviderError
from lamina.ports.language_model import ChatMessage, ChatRole, Completion, Usage

__all__ = ["Ask", "NotOfSchema", "ObjectSchema", "cleaned", "request_object"]

Ask: TypeAlias = Callable[[Sequence[ChatMessage]], Awaitable[Completion]]
"""Asks the model once."""

_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL | re.IGNORECASE)
_QUOTED_CHARS = 2_000
"""How much of a wrong answer is shown to the model again: enough to see its shape, not a megabyte of it."""


class NotOfSchema(Exception):
    """What keeps an answer from being an object of the schema; never holds the answer's own text."""


class ObjectSchema:
    """A JSON schema (draft 2020-12) of an object.

    Raises:
        InvalidInput: it is no JSON schema, or not one of an object.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        from jsonschema import Draft202012Validator, SchemaError
        from referencing import Registry

        if schema.get("type") != "object":
            raise InvalidInput("schema", "is not of an object", 'Give a JSON schema with "type": "object".')
        self.definition = dict(schema)
        try:
            Draft202012Validator.check_schema(self.definition)
        except SchemaError as error:
            raise InvalidInput("schema", f"is no JSON schema: {error.message}", "Correct it.") from error
        # An empty registry: a `$ref` to another document is an error and never a download.
        registry: Registry[Any] = Registry()
        self._validator = Draft202012Validator(self.definition, registry=registry)

    def instruction(self) -> ChatMessage:
        """What tells a model to answer with such an object."""
        definition = json.dumps(self.definition, ensure_ascii=False)
        return ChatMessage(
            ChatRole.SYSTEM,
            f"Answer with one JSON object and nothing else. It must satisfy this JSON schema:\n{definition}",
        )

    def parse(self, text: str) -> dict[str, Any]:
        """The object in the text, its strings cleaned.

        Raises:
            NotOfSchema: there is not exactly one, or it does not satisfy the schema.
        """
        stripped = text.strip().removeprefix("\ufeff")
        fenced = _FENCED.fullmatch(stripped)
        try:
            data = json.loads(
                fenced[1] if fenced else stripped, parse_constant=_refuse_constant, parse_float=_finite_float
            )
            data = cleaned(data)
        except json.JSONDecodeError as error:
            raise NotOfSchema(f"it is not JSON: {error.msg}, at character {error.pos} of {len(text)}") from error
        except RecursionError as error:
            raise NotOfSchema("it is nested too deeply") from error
        except ValueError as error:
            raise NotOfSchema(f"it holds a number that cannot be read: {error}") from error
        self.check(data)
        assert isinstance(data, dict)  # noqa: S101 - the schema is of an object
        return data

    def check(self, data: object) -> None:
        """Raise `NotOfSchema`, naming the place and the rule, if the data does not satisfy the schema."""
        from jsonschema.exceptions import best_match
        from referencing.exceptions import Unresolvable

        try:
            error = best_match(self._validator.iter_errors(data))
        except Unresolvable as problem:
            raise InvalidInput(
                "schema", "refers to a definition that it does not hold", "Add it to $defs."
            ) from problem
        except RecursionError as problem:
            raise NotOfSchema("it is nested too deeply") from problem
        if error is not None:
            rule = json.dumps(error.validator_value, ensure_ascii=False, default=str)[:200]
            raise NotOfSchema(f"{error.json_path} does not satisfy {error.validator}: {rule}")


async def request_object(
    provider: str, ask: Ask, messages: Sequence[ChatMessage], schema: ObjectSchema, *, attempts: int
) -> Completion:
    """The completion whose `data` is an object of the schema, after at most so many attempts; usage is their sum.

    Raises:
        ProviderError: no attempt gave such an object; the message says what was wrong with the last one.
    """
    conversation = list(messages)
    usage = Usage()
    for attempt in range(1, attempts + 1):
        answer = await ask(conversation)
        usage = Usage(usage.input_tokens + answer.usage.input_tokens, usage.output_tokens + answer.usage.output_tokens)
        try:
            return Completion(text=answer.text, usage=usage, data=schema.parse(answer.text))
        except NotOfSchema as problem:
            if attempt == attempts:
                raise ProviderError(
                    provider, f"none of {attempts} answers was an object of the schema; of the last one, {problem}"
                ) from problem
            conversation = [
                *messages,
                *([ChatMessage(ChatRole.ASSISTANT, answer.text[:_QUOTED_CHARS])] if answer.text.strip() else []),
                ChatMessage(ChatRole.USER, f"That answer cannot be used: {problem}. {schema.instruction().content}"),
            ]
    raise InvalidInput("attempts", f"must be at least 1, not {attempts}", "Give such a number.")


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _finite_float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def cleaned(data: Any) -> Any:
    """The JSON value with every string in it cleaned, keys included."""
    if isinstance(data, str):
        return clean(data)
    if isinstance(data, list):
        return [cleaned(each) for each in data]
    if isinstance(data, dict):
        return {clean(key): cleaned(value) for key, value in data.items()}
    return data

"""The base of every settings model: strict about keys, and every complaint is a `ConfigError`."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from lamina.errors import ConfigError

__all__ = ["Number", "StrictModel", "WholeNumber", "unknown_key"]

_ACRONYMS: Final = (("Ttl", "TTL"), ("Url", "URL"), ("Api", "API"))


def _no_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be a number, not a bool")  # noqa: TRY004 - pydantic collects ValueErrors only
    return value


Number = Annotated[float, BeforeValidator(_no_bool)]
"""A finite float; a text that spells one is taken, since the environment holds only text."""
WholeNumber = Annotated[int, BeforeValidator(_no_bool)]
"""An int; a text that spells one is taken."""


class StrictModel(BaseModel):
    """Keys in snake_case or camelCase, none unknown; frozen.

    Raises:
        ConfigError: from the constructor and from `model_validate`; its field is the dotted path of the value.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, hide_input_in_errors=True, allow_inf_nan=False
    )

    def __init__(self, /, **data: Any) -> None:
        with_field_names = self.field_names(data)
        try:
            super().__init__(**with_field_names)
        except ValidationError as error:
            raise _translated(error) from error

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """As pydantic's, but complains with a `ConfigError`."""
        try:
            return super().model_validate(obj, **options)
        except ValidationError as error:
            raise _translated(error) from error

    @classmethod
    def field_names(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        """The data with every key as the field is named.

        Raises:
            ConfigError: a key is unknown, or one field stands there in two spellings.
        """
        spellings = _spellings(cls)
        named: dict[str, Any] = {}
        for key, value in data.items():
            if key not in spellings:
                raise unknown_key(key, cls.model_fields)
            field = spellings[key]
            if field in named:
                raise ConfigError(field, "is given twice, in two spellings", "Keep one of them.")
            named[field] = value
        return named


def unknown_key(key: str, known: Iterable[str]) -> ConfigError:
    """The error for a key that is none of the known ones, with the nearest as the remedy."""
    names = sorted(known)
    folded = {name.replace("_", ""): name for name in names}
    close = difflib.get_close_matches(str(key).replace("_", "").lower(), folded, n=1)
    remedy = f"Did you mean {folded[close[0]]!r}?" if close else f"The known keys are: {', '.join(names)}."
    return ConfigError(str(key), "is unknown", remedy)


@functools.cache
def _spellings(model: type[BaseModel]) -> dict[str, str]:
    spellings: dict[str, str] = {}
    for field in model.model_fields:
        camel = to_camel(field)
        spellings[field] = spellings[camel] = field
        for plain, capitals in _ACRONYMS:
            spellings[camel.replace(plain, capitals)] = field
    return spellings


def _translated(error: ValidationError) -> ConfigError:
    """The first complaint as a `ConfigError`, and how many more there are."""
    complaints = error.errors(include_url=False, include_input=False)
    first = complaints[0]
    path = [str(part) for part in first["loc"] if not _is_branch(part)]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, ConfigError):
        if cause.field:  # empty: the complaint is about the value itself, and pydantic knows its path
            path.append(cause.field)
        problem, remedy = cause.problem, cause.remedy
    else:
        problem, remedy = _sentence(first["msg"]), "Correct the value."
    if len(complaints) > 1:
        remedy += f" ({len(complaints) - 1} more values are wrong as well.)"
    return ConfigError(".".join(path) or "settings", problem, remedy)


def _is_branch(part: int | str) -> bool:
    """Whether pydantic put this into the path only to say which member of a union it tried."""
    return isinstance(part, str) and (part in {"float", "int", "str", "timedelta", "none"} or "[" in part)


def _sentence(message: str) -> str:
    for prefix in ("Value error, ", "Input "):
        message = message.removeprefix(prefix)
    return message[:1].lower() + message[1:]

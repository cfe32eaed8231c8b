"""JSON as it stands in RFC 8259, and no more than every client and every store can hold."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from lamina.domain.text import is_clean
from lamina.server.problems import Problem

__all__ = ["MAX_DEPTH", "MalformedJson", "check_json", "read_json", "wrong_values"]

MAX_DEPTH: Final = 64
_MOST_DIGITS: Final = 20
_SMALLEST: Final = -(2**63)
_LARGEST: Final = 2**63 - 1


def check_json(body: bytes) -> None:
    """Refuse a body that is no JSON, or holds what cannot be kept: named by its path.

    Raises:
        Problem: 400, it is no JSON in UTF-8, is too deep, or gives a name twice; 422, it is, and holds a number
            beyond 64 bits, or half a character.
    """
    try:
        read = read_json(body)
    except MalformedJson as error:
        raise _malformed(str(error)) from None
    for field, problem, depth in wrong_values("body", read):
        if depth > MAX_DEPTH:
            raise _malformed(problem)
        detail = f"{field}: {problem}."
        raise Problem(422, "invalid_value", "A value cannot be taken", detail, ({"field": field, "problem": problem},))


class MalformedJson(ValueError):
    """It is no JSON; the message says why."""


def read_json(text: bytes) -> Any:
    """What the text says, in which nothing is what only Python would read.

    Raises:
        MalformedJson: it is no JSON in UTF-8, is too deep to be read, or gives a name twice.
    """
    try:
        return json.loads(
            text.decode("utf-8"), parse_constant=_no_number, parse_int=_integer, object_pairs_hook=_once_each
        )
    except UnicodeDecodeError:
        raise MalformedJson("it is not UTF-8") from None
    except RecursionError:
        raise MalformedJson(f"it is nested more than {MAX_DEPTH} levels deep") from None
    except json.JSONDecodeError as error:
        raise MalformedJson(f"{error.msg.lower()} at character {error.pos}") from None


def _no_number(name: str) -> Any:
    raise MalformedJson(f"{name} is no JSON number")


def _integer(text: str) -> int | float:
    return int(text) if len(text) <= _MOST_DIGITS else math.inf


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise MalformedJson("a name stands twice in one object")
    return made


def _malformed(problem: str) -> Problem:
    return Problem(400, "malformed_json", "The body is no JSON", f"The body cannot be read: {problem}.")


def wrong_values(root: str, read: Any) -> Iterator[tuple[str, str, int]]:
    """What cannot be kept of what was read: where, as a path from `root`, what is wrong, and how deep that is."""
    level: list[tuple[str, Any]] = [(root, read)]
    depth = 0
    while level:
        depth += 1
        if depth > MAX_DEPTH + 1:
            yield root, f"it is nested more than {MAX_DEPTH} levels deep", depth
            return
        below: list[tuple[str, Any]] = []
        for path, value in level:
            problem = _problem(value)
            if problem is not None:
                yield path, problem, 0
            below += _children(path, value)
        level = below


def _children(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    match value:
        case Mapping():
            yield from ((f"{path}.{_shown(key)}", each) for key, each in value.items())
        case list():
            yield from ((f"{path}.{index}", each) for index, each in enumerate(value))


def _problem(value: Any) -> str | None:
    match value:
        case bool() | None:
            return None
        case int():
            return None if _SMALLEST <= value <= _LARGEST else "must be a number that 64 bits hold"
        case float():
            return None if math.isfinite(value) else "must be a number that 64 bits hold"
        case str():
            return None if _is_whole(value) else "holds half a character: a lone surrogate"
        case dict():
            return None if all(map(_is_whole, value)) else "has a name with half a character: a lone surrogate"
        case _:
            return None


def _is_whole(text: str) -> bool:
    """NUL is left to whoever takes the text: a name refuses it, content is cleaned of it."""
    return is_clean(text.replace("\0", ""))


def _shown(key: str) -> str:
    return key.encode("utf-8", "replace").decode()[:64]

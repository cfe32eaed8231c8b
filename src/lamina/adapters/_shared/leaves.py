"""Metadata as exact tokens, for backends whose own filters do not tell 1 from true or enter every list.

Each scalar at a path gives a token of the path and the value, each path that is there one of the
path alone, and each scalar element of a list one more: equality, membership and presence then are
membership in one array of keywords, whatever a backend makes of numbers, nulls and odd keys.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from lamina.domain.conditions import Scalar

__all__ = ["element_token", "leaf_tokens", "presence_token", "tag_token", "value_token"]

_SIZE: Final = 12
"""Bytes of a token: 96 bits, so that among a billion of them two alike are a chance in ten thousand millions."""


def leaf_tokens(metadata: Mapping[str, Any]) -> list[str]:
    """Every token of the metadata, each once."""
    return list(dict.fromkeys(_tokens((), metadata)))


def value_token(path: tuple[str, ...], value: Scalar) -> str:
    """The token of an object that has this scalar at this path; 1 and 1.0 have the same, 1 and true have not."""
    return _token("=", path, value)


def element_token(path: tuple[str, ...], value: Scalar) -> str:
    """The token of an object that has at this path a list with this element."""
    return _token("[", path, value)


def presence_token(path: tuple[str, ...]) -> str:
    """The token of an object that has anything at this path."""
    return _token("?", path, None)


def tag_token(tag: str) -> str:
    """The token of an entry that has the tag, for backends that keep tags among the tokens."""
    return f"tag-{hashlib.blake2b(tag.encode(), digest_size=_SIZE).hexdigest()}"


def _tokens(path: tuple[str, ...], value: Any) -> Iterator[str]:
    if path:
        yield presence_token(path)
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _tokens((*path, key), each)
    elif isinstance(value, list):
        for each in value:
            if not isinstance(each, list | Mapping):
                yield element_token(path, each)
    else:
        yield value_token(path, value)


def _token(kind: str, path: tuple[str, ...], value: Scalar) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # which compares equal to it, however large
    written = json.dumps([kind, path, value])
    return hashlib.blake2b(written.encode(), digest_size=_SIZE).hexdigest()

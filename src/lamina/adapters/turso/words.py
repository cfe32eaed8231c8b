"""Keyword search: what stands in the text index, and how it is asked. What users write never is grammar there."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

from lamina.domain.memory import SHARED_LAYERS, MemoryEntry
from lamina.domain.scope import Scope

__all__ = ["is_indexed", "match_of", "places"]

_INDEXED: Final = re.compile("[a-z0-9\u0080-\ud7ff\ue000-\U0010ffff]+")
"""What `lamina.domain.lexical` makes; other words stand in no entry, and SQLite would change or refuse them."""


def is_indexed(word: str) -> bool:
    """Whether any entry could hold the word."""
    return _INDEXED.fullmatch(word) is not None


def places(entry: MemoryEntry) -> str:
    """Tokens of where the entry is, so that the index leaves others' texts aside; SQL still compares the names."""
    tokens = [_token(entry.tenant), _token(entry.tenant, "owner", entry.owner)]
    if entry.layer in SHARED_LAYERS:
        tokens.append(_token(entry.tenant, "shared"))
    return " ".join(tokens)


def match_of(scope: Scope, words: Iterable[str]) -> str:
    """The query for entries that may lie in the scope and hold some of the words, at least one."""
    reach = [_token(scope.tenant)]
    if scope.owner is not None:
        reach = [_token(scope.tenant, "owner", scope.owner)]
        if scope.include_shared:
            reach.append(_token(scope.tenant, "shared"))
    return f"place : ({_any(reach)}) AND terms : ({_any(words)})"


def _token(*names: str) -> str:
    """A word of letters and digits only, which stands for the names."""
    return "p" + hashlib.blake2b("\0".join(names).encode(), digest_size=10).hexdigest()


def _any(words: Iterable[str]) -> str:
    return " OR ".join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    return '"' + word.replace('"', '""') + '"'

"""The version of the keys' layout, and the index of words, which follows the analyzer of this code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from lamina.adapters.redis.layout import BACKEND, Names, stored_of, words_of
from lamina.adapters.redis.server import Server
from lamina.domain.lexical import ANALYZER_VERSION
from lamina.errors import StoreDamaged

__all__ = ["follow_analyzer"]

LAYOUT: Final = 1
"""The version of what is kept; grows when an older Lamina could not read it."""

_PAGE: Final = 500
_GLOB: Final = re.compile(r"([\[\]*?\\])")
_TOKEN: Final = 32
"""Characters of a tenant's token in a key."""


def follow_analyzer(server: Server, names: Names, place: str) -> None:
    """Note the versions in a new table; index all contents anew if an earlier version of the analyzer did it.

    Raises:
        StoreDamaged: the layout is another one, or of a newer Lamina; nothing was changed.
    """
    key = names.key("layout")
    ours = f"{LAYOUT} {ANALYZER_VERSION}"
    if server.client.set(key, ours, nx=True):
        return
    found = bytes(server.read("GET", key) or b"").decode("ascii", "replace")
    if found == ours:
        return
    layout, _, analyzer = found.partition(" ")
    if layout != str(LAYOUT) or not analyzer.isdecimal() or int(analyzer) > ANALYZER_VERSION:
        problem = f"the table on {place} has the layout {found!r:.40}, and this Lamina knows {ours!r}"
        raise StoreDamaged(BACKEND, problem, "Upgrade Lamina, or give another table or prefix.")
    _index_anew(server, names)
    server.client.set(key, ours)


def _index_anew(server: Server, names: Names) -> None:
    start = names.key("e", "").encode()
    pattern = _GLOB.sub(r"\\\1", start.decode()) + "*"
    keys = (
        bytes(key)[len(start) :].decode("utf-8", "replace") for key in server.client.scan_iter(pattern, count=_PAGE)
    )
    for page in _pages(keys):
        by_tenant: dict[str, list[str]] = {}
        for key in page:
            by_tenant.setdefault(key[:_TOKEN], []).append(key[_TOKEN + 1 :])
        for token, ids in by_tenant.items():
            _index_page(server, names, token, ids)


def _index_page(server: Server, names: Names, token: str, ids: list[str]) -> None:
    arguments = []
    for stored in filter(None, map(stored_of, server.ask("load", token, "0", *ids))):
        if names.tenant(stored.entry.tenant) == token:  # else another table's, whose prefix goes on like a key of ours
            arguments += [stored.entry.id, stored.version, words_of(stored.entry.content)]
    server.tell("reindex", token, *arguments)


def _pages(keys: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(keys)
    while page := list(islice(rest, _PAGE)):
        yield page

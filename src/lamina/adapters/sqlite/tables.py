"""The names of a collection's tables, all made from one checked prefix."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from lamina.errors import ConfigError

__all__ = ["Tables"]

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
_PARTS: Final = ("partitions", "text", "vectors", "blocks", "history", "meta", "counters")


class Tables:
    """The tables of one collection. Only these names are ever formatted into SQL; all else is bound."""

    def __init__(self, prefix: str) -> None:
        if not isinstance(prefix, str) or not _NAME.fullmatch(prefix) or prefix.lower().startswith("sqlite"):
            remedy = "Use ASCII letters, digits and underscores, at most 63, starting with a letter."
            raise ConfigError("table", f"{prefix!r} cannot name a table", remedy)
        self.prefix = prefix
        self.names: Final = {"memories": prefix} | {part: f"{prefix}_{part}" for part in _PARTS}
        self.sql = cache(self._sql)

    def _sql(self, template: str, **parts: str) -> str:
        """The template with `{memories}`, `{text}` and so on as this collection's tables.

        `parts` are conditions that `where_sql` made.
        """
        return template.format_map(self.names | parts)

"""Texts for language models: one Markdown file each, with `{{name}}` where a value stands."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Final

__all__ = ["render"]

_PLACE: Final = re.compile(r"\{\{(\w+)\}\}")


@cache
def _text(name: str) -> str:
    return files(__name__).joinpath(f"{name}.md").read_text("utf-8").strip()


def render(name: str, /, **values: str) -> str:
    """The text of this name with its places filled; each place needs a value, each value a place.

    A value is put in as it is, and never read for places itself.

    Raises:
        KeyError: a place has no value.
        TypeError: a value has no place.
    """
    text = _text(name)
    superfluous = values.keys() - set(_PLACE.findall(text))
    if superfluous:
        raise TypeError(f"The prompt {name} has no place for {', '.join(sorted(superfluous))}")
    return _PLACE.sub(lambda match: values[match[1]], text)

"""The routes of an app, one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fastapi.routing import APIRoute

__all__ = ["methods_at", "routes_of"]


def routes_of(routes: Iterable[Any]) -> Iterator[APIRoute]:
    """Those of included routers too, which newer versions of the framework keep whole."""
    for each in routes:
        if isinstance(each, APIRoute):
            yield each
        else:
            included = getattr(each, "original_router", None)
            yield from routes_of(getattr(included, "routes", ()))


def methods_at(routes: Iterable[Any], path: str) -> list[str]:
    """Every method of the resource at the path, whichever route has it; the most special template counts."""
    found: dict[str, set[str]] = {}
    for each in routes_of(routes):
        if each.path_regex.match(path):
            found.setdefault(each.path, set()).update(each.methods or ())
    return sorted(found[min(found, key=lambda template: template.count("{"))]) if found else []

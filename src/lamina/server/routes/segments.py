"""Paths whose segments may be any id: a slash in an id, sent as `%2F`, parts no segments."""

from __future__ import annotations

from urllib.parse import unquote

from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

__all__ = ["SegmentRoute"]


class SegmentRoute(APIRoute):
    """A route that is matched before the percent-encoding is undone, so that it is undone once and in the ids alone."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As the framework matches, but on the path as it was sent."""
        raw = scope.get("raw_path")
        if scope["type"] != "http" or not raw:
            return super().matches(scope)
        match, found = super().matches({**scope, "path": raw.decode("ascii", "replace")})
        if match is not Match.NONE:
            given = {name: _read(value) for name, value in found.get("path_params", {}).items()}
            found = {**found, "path_params": given}
        return match, found


def _read(value: object) -> object:
    return unquote(value) if isinstance(value, str) else value

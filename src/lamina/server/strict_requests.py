"""What no route takes: parameters it does not know, the same one twice, and a body of another kind than its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from fastapi import Request, params
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel

from lamina.server.authentication import REFUSED
from lamina.server.middleware.bodies import is_json
from lamina.server.problems import Problem

__all__ = ["check_request"]


async def check_request(request: Request) -> None:
    """For every route, before its own parameters are read.

    Raises:
        Problem: 422, a query parameter is unknown, there twice, or holds a NUL; 415, the body is no JSON.
    """
    route = request.scope.get("route")
    if REFUSED in request.scope or not isinstance(route, APIRoute):
        return  # a route that needs a token says first that there is none
    given = request.query_params.multi_items()
    known = dict(_query_parameters(route.dependant)) if given else {}
    counts = Counter(name for name, _ in given)
    for name, value in given:
        if name not in known:
            raise _refused(name, f"is unknown; known are: {', '.join(sorted(known)) or 'none'}")
        if counts[name] > 1 and not known[name]:
            raise _refused(name, "stands there more than once")
        if "\0" in value:
            raise _refused(name, "holds a NUL")
    if "\0" in request.scope["path"]:
        raise _refused("path", "holds a NUL", place="")
    _check_media_type(request, route)


def _query_parameters(dependant: Dependant) -> Iterator[tuple[str, bool]]:
    """The names that a route and all that it depends on know, and whether each may be repeated."""
    for each in dependant.query_params:
        annotation = each.field_info.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            for name, info in annotation.model_fields.items():
                yield info.alias or name, _is_list(info.annotation)
        else:
            yield each.alias, _is_list(annotation)
    for below in dependant.dependencies:
        yield from _query_parameters(below)


def _is_list(annotation: Any) -> bool:
    origin = get_origin(annotation)
    if origin in {Union, UnionType, Annotated}:
        return any(_is_list(each) for each in get_args(annotation))
    return (origin or annotation) in {list, set, tuple, frozenset}


def _check_media_type(request: Request, route: APIRoute) -> None:
    has_body = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
    given = request.headers.get("content-type", "")
    streamed = (route.openapi_extra or {}).get("requestBody")
    if streamed is not None:
        if not (has_body or given) and streamed.get("required"):
            raise _refused("body", "is missing", place="")
        taken = list(streamed["content"])
        is_right = given.partition(";")[0].strip().lower() in taken
    elif route.body_field is not None and not isinstance(route.body_field.field_info, params.Form):
        taken, is_right = ["application/json"], is_json(given)
    else:
        return
    if has_body and not is_right:
        detail = f"Send the body with the Content-Type {' or '.join(taken)}."
        raise Problem(415, "unsupported_media_type", "The body is of the wrong kind", detail)


def _refused(name: str, problem: str, *, place: str = "query.") -> Problem:
    field = f"{place}{name[:64]}"
    error = {"field": field, "problem": problem}
    return Problem(422, "invalid_request", "The request cannot be taken", f"{field}: {problem}.", (error,))

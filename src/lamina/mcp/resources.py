"""Resources: each memory under its id, and the profile of the owner."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import Field

from lamina.domain.text import MAX_NAME_CHARS, is_blank, is_clean
from lamina.errors import MemoryNotFound
from lamina.mcp.bound_memories import BoundMemories
from lamina.mcp.results import NOTICE, Notice, One
from lamina.mcp.tool import Result

__all__ = ["TEMPLATES", "listed_resources", "read_resource", "uri_of", "uri_of_profile"]

_SCHEME: Final = "memory://"
_JSON: Final = "application/json"

TEMPLATES: Final = (
    types.ResourceTemplate(
        uri_template="memory://{id}",
        name="memory",
        title="A memory",
        description="One memory, whole, with its metadata and revision. The id is percent-encoded.",
        mime_type=_JSON,
    ),
    types.ResourceTemplate(
        uri_template="memory://profile/{user}",
        name="profile",
        title="A user's profile",
        description="What is known of the user: preferences, and the rules that hold for them. Only the user of this "
        "connection has one here.",
        mime_type=_JSON,
    ),
)


class Profile(Result):
    """What is known of the owner."""

    notice: Notice = NOTICE
    user: str
    role: str
    permissions: list[str]
    policies: list[str] = Field(description="Rules that hold for the user, from the application.")
    preferences: dict[str, Any]


def uri_of(id: str) -> str:
    """The address of a memory."""
    return f"{_SCHEME}{quote(id, safe='')}"


def uri_of_profile(owner: str) -> str:
    """The address of an owner's profile."""
    return f"{_SCHEME}profile/{quote(owner, safe='')}"


def listed_resources(owner: str) -> list[types.Resource]:
    """What can be read without knowing an id."""
    return [
        types.Resource(
            uri=uri_of_profile(owner),
            name="profile",
            title="Your profile",
            description="What is known of you: preferences, and the rules that hold for you.",
            mime_type=_JSON,
        )
    ]


async def read_resource(memories: BoundMemories, uri: str) -> types.ReadResourceResult:
    """The resource at this address.

    Raises:
        MCPError: there is none here; what is somebody else's is none.
    """
    match _segments(uri):
        case [id]:
            try:
                result: Result = One.of(await memories.get(id))
            except MemoryNotFound:
                raise _unknown(uri) from None
        case ["profile", user] if user == memories.binding.owner:
            result = await _profile(memories)
        case _:
            raise _unknown(uri)
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=uri, mime_type=_JSON, text=result.shown())]
    )


async def _profile(memories: BoundMemories) -> Profile:
    context = await memories.context("", touch=False)
    return Profile(
        user=context.user.user_id,
        role=context.user.role,
        permissions=context.permissions,
        policies=context.policies,
        preferences=context.user.preferences,
    )


def _segments(uri: str) -> list[str]:
    """The decoded parts of the address; none where it is not one of ours."""
    if not uri.startswith(_SCHEME):
        return []
    try:
        parts = [unquote(each, errors="strict") for each in uri.removeprefix(_SCHEME).split("/")]
    except UnicodeDecodeError:
        return []
    usable = all(0 < len(part) <= MAX_NAME_CHARS and is_clean(part) and not is_blank(part) for part in parts)
    return parts if usable else []


def _unknown(uri: str) -> MCPError:
    return MCPError(code=types.INVALID_PARAMS, message="There is no such resource here.", data={"uri": uri[:2_000]})

"""What the adapter is told, checked: the address, the keys and the names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from lamina.adapters._shared.options import one_of
from lamina.errors import ConfigError

__all__ = ["Keys", "Place", "Token", "check_name", "checked_keys", "checked_place"]

Token: TypeAlias = str | Callable[[], str]
"""The JWT of a signed-in user, or what gives one that is still valid."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PROJECT: Final = re.compile(r"[a-z0-9]+")
_HOSTED: Final = ".supabase.co"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a project is."""

    url: str
    """Without a slash at its end."""
    host: str
    """For errors and logs."""
    project: str | None
    """The project's reference, where the address tells it."""


@dataclass(frozen=True, slots=True)
class Keys:
    """What a request carries to prove who asks."""

    api_key: str = field(repr=False)
    token: Token | None = field(repr=False)
    is_service: bool

    def headers(self) -> Mapping[str, str]:
        """The headers of a request that is sent now.

        A JWT goes along as the bearer's; the newer keys, which are none, are exchanged for one by the gateway.

        Raises:
            ConfigError: the function that gives a user's token gave none.
        """
        bearer = self.token() if callable(self.token) else self.token
        if callable(self.token):
            _check_key("user_token", bearer)
        if bearer is None and _is_jwt(self.api_key):
            bearer = self.api_key
        return {"apikey": self.api_key} | ({} if bearer is None else {"Authorization": f"Bearer {bearer}"})


def checked_place(url: object) -> Place:
    """The address taken apart.

    Raises:
        ConfigError: it is none of a project.
    """
    remedy = "Give the project's URL, such as https://abcdefgh.supabase.co."
    if not isinstance(url, str) or not url.isascii():
        raise ConfigError("url", "is no address", remedy)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigError("url", "is no address", remedy) from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigError("url", "does not begin with https:// or http://", remedy)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ConfigError("url", "holds credentials, a query or a fragment", "Give keys as service_key or anon_key.")
    host = parts.hostname if port is None else f"{parts.hostname}:{port}"
    project = parts.hostname.removesuffix(_HOSTED) if parts.hostname.endswith(_HOSTED) else None
    return Place(url.rstrip("/"), host, project if project and _PROJECT.fullmatch(project) else None)


def checked_keys(
    *, anon_key: str | None, api_key: str | None, service_key: str | None, user_token: Token | None
) -> Keys:
    """The keys that requests will carry.

    Raises:
        ConfigError: there is none, or they contradict each other.
    """
    given = {"anon_key": anon_key, "api_key": api_key, "service_key": service_key}
    given |= {} if callable(user_token) else {"user_token": user_token}
    for name, key in given.items():
        if key is not None:
            _check_key(name, key)
    public = one_of("anon_key", anon_key, api_key=api_key)
    if service_key is not None and user_token is not None:
        raise ConfigError("user_token", "is given beside service_key, which reaches all tenants", "Give one of them.")
    if service_key is not None:
        return Keys(service_key, None, is_service=True)
    if public is None:
        remedy = "Give service_key on a server of yours, or anon_key and user_token elsewhere."
        raise ConfigError("anon_key", "is missing, and so is service_key", remedy)
    return Keys(public, user_token, is_service=False)


def check_name(field_name: str, name: object, longest: int = 40) -> str:
    """The name, if it is one that every part of the set-up can carry.

    Raises:
        ConfigError: it is not.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > longest or "__" in name:
        problem = f"must be 1 to {longest} ASCII letters, digits and single underscores, and begin with no digit"
        raise ConfigError(field_name, problem, "Give such a name, such as lamina_memories.")
    return name


def _check_key(name: str, key: object) -> None:
    if not isinstance(key, str) or not key or not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(name, "is empty or holds white space or characters beyond ASCII", "Copy the key anew.")


def _is_jwt(key: str) -> bool:
    return key.count(".") == 2  # noqa: PLR2004 - its three parts

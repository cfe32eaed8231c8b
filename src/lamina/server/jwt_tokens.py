"""Tokens that another service signs: JSON Web Tokens, verified against its key set."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import jwt

from lamina.errors import ConfigError, InvalidInput, InvalidType
from lamina.server.principal import Access, Principal
from lamina.server.problems import Problem
from lamina.settings import JwtConfig

__all__ = ["JwtTokens", "looks_like_jwt"]

_REFETCH_AFTER: Final = 10.0
"""Seconds before an unknown key makes the key set be fetched once more: tokens are made up faster than that."""


def looks_like_jwt(token: str) -> bool:
    """Whether the token has the three parts of one; no token of ours has."""
    return token.count(".") == 2  # noqa: PLR2004 - header, claims and signature


class JwtTokens:
    """Verifies signature, issuer, audience and times, and reads the principal from the claims."""

    def __init__(self, settings: JwtConfig) -> None:
        self._settings = settings
        self._keys = _KeysOfFile(settings.jwks_file) if settings.jwks_file is not None else _KeysOfUrl(settings)

    async def __call__(self, token: str) -> Principal | None:
        """Whom the token stands for; None refuses it.

        Raises:
            Problem: 503, the keys cannot be fetched now.
        """
        claims = await self._verified(token)
        return None if claims is None else self._principal(claims)

    async def _verified(self, token: str) -> Mapping[str, Any] | None:
        settings = self._settings
        try:
            header = jwt.get_unverified_header(token)
            algorithm, kid = header.get("alg"), header.get("kid")
            if algorithm not in settings.algorithms or not isinstance(kid, str | None):
                return None
            key = await self._keys.find(kid)
            if key is None or key.public_key_use not in {None, "sig"} or key.algorithm_name != algorithm:
                return None
            claims: Mapping[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=settings.audience,
                issuer=settings.issuer,
                leeway=settings.leeway,
                options={"require": ["exp", "iss", "aud"]},
            )
        except (jwt.PyJWTError, ValueError, RecursionError):  # the latter two: it is no token at all
            return None
        return claims

    def _principal(self, claims: Mapping[str, Any]) -> Principal | None:
        settings = self._settings
        organization, project = claims.get(settings.organization_claim), claims.get(settings.project_claim)
        subject = claims.get(settings.owner_claim) if settings.owner_claim else None
        if organization is None or (settings.owner_claim and subject is None):
            return None
        projects = claims.get(settings.projects_claim)
        who = json.dumps([claims["iss"], organization, claims.get("sub")], sort_keys=True)
        try:
            return Principal.of(
                organization,
                project,
                subject,
                access=self._access(claims.get(settings.scope_claim)),
                id=f"jwt-{hashlib.sha256(who.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}",
                projects=[each for each in projects if isinstance(each, str)] if isinstance(projects, list) else (),
            )
        except (InvalidInput, InvalidType):
            return None

    def _access(self, scopes: Any) -> list[Access]:
        words = scopes.split() if isinstance(scopes, str) else scopes if isinstance(scopes, list) else []
        prefix = self._settings.scope_prefix
        return [each for each in Access if f"{prefix}{each.value}" in words]


class _KeysOfFile:
    """A key set that is read once."""

    def __init__(self, file: Path) -> None:
        try:
            self._keys = jwt.PyJWKSet.from_json(file.read_text(encoding="utf-8"))
        except (OSError, ValueError, AttributeError, jwt.PyJWTError) as error:
            raise ConfigError(
                "server.jwt.jwks_file", f"{file} holds no key set: {error}", "Give a file with a JSON Web Key Set."
            ) from error

    async def find(self, kid: str | None) -> jwt.PyJWK | None:
        return _of(self._keys, kid)


class _KeysOfUrl:
    """A key set that is fetched, in a thread, when it is old or a key is unknown."""

    def __init__(self, settings: JwtConfig) -> None:
        assert settings.jwks_url is not None  # noqa: S101 - the settings see to it
        self._client = jwt.PyJWKClient(
            settings.jwks_url, cache_keys=False, cache_jwk_set=False, timeout=settings.timeout
        )
        self._lifespan = settings.key_lifespan
        self._fetching = asyncio.Lock()
        self._keys: jwt.PyJWKSet | None = None
        self._fetched = self._tried = -_REFETCH_AFTER

    async def find(self, kid: str | None) -> jwt.PyJWK | None:
        found = _of(self._keys, kid)
        if self._is_due(found):
            async with self._fetching:
                found = _of(self._keys, kid)
                if self._is_due(found):
                    await self._fetch()
                    found = _of(self._keys, kid)
        return found

    def _is_due(self, found: jwt.PyJWK | None) -> bool:
        now = time.monotonic()
        if self._keys is not None and now - self._tried < _REFETCH_AFTER:
            return False
        return self._keys is None or found is None or now - self._fetched >= self._lifespan

    async def _fetch(self) -> None:
        now = time.monotonic()
        if self._keys is None and now - self._tried < 1:
            raise _unavailable()
        self._tried = now
        try:
            self._keys = await asyncio.to_thread(self._client.get_jwk_set, True)  # noqa: FBT003 - it is positional
        except (jwt.PyJWTError, ValueError, OSError) as error:
            if self._keys is None or now - self._fetched >= 2 * self._lifespan:
                raise _unavailable() from error
            return  # for a while the keys that are known serve on
        self._fetched = now


def _of(keys: jwt.PyJWKSet | None, kid: str | None) -> jwt.PyJWK | None:
    """The key of the id; without an id, the only one."""
    if keys is None:
        return None
    known = [each for each in keys.keys if kid is None or each.key_id == kid]
    return known[0] if len(known) == 1 else None


def _unavailable() -> Problem:
    detail = "The keys that tokens are verified with cannot be fetched now."
    return Problem(503, "keys_unavailable", "Tokens cannot be verified now", detail, headers={"Retry-After": "5"})

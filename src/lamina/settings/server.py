"""How the HTTP server serves."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from lamina.errors import ConfigError
from lamina.settings.models import FilePath
from lamina.settings.strict_model import Number, StrictModel, WholeNumber

__all__ = ["ASYMMETRIC_ALGORITHMS", "JwtConfig", "RateLimit", "ServerConfig", "is_loopback"]

_MEBIBYTE: Final = 1024 * 1024
ASYMMETRIC_ALGORITHMS: Final = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
"""Those whose key to verify with cannot sign: the only ones that are taken."""
_HOST: Final = re.compile(r"\*|(?:\*\.)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?|\[?[0-9A-Fa-f:.]+\]?")
_ORIGIN: Final = re.compile(r"https?://[A-Za-z0-9.\[\]:_-]+")


def _words(value: Any) -> Any:
    """The environment holds only text: words with commas between."""
    if isinstance(value, str):
        return tuple(part for each in value.split(",") if (part := each.strip()))
    return tuple(value) if isinstance(value, list) else value


Words = Annotated[tuple[str, ...], BeforeValidator(_words)]


class RateLimit(StrictModel):
    """How often one token may ask: `per_second` requests on the long run, `burst` at once."""

    per_second: Annotated[Number, Field(gt=0, le=1_000_000)] = 50.0
    burst: Annotated[WholeNumber, Field(ge=1, le=1_000_000)] = 200


class JwtConfig(StrictModel):
    """Tokens that another service signs. `issuer` and `audience` must be those of the token, exactly.

    The keys come from `jwks_url` (https, or http on this machine) or from the file `jwks_file`. Each `*_claim` names
    the claim that holds it: `organization_claim` and `project_claim` make the tenant, `owner_claim` the owner (an empty
    name: the tokens are bound to no owner), `scope_claim` what the token may do, as words or a list, each of them
    `read`, `write` or `admin`, perhaps with `scope_prefix` before. `leeway`, in seconds, forgives clocks that
    disagree; `key_lifespan` is how long fetched keys are used, `timeout` how long a fetch may take.
    """

    issuer: str = Field(min_length=1)
    audience: str = Field(min_length=1)
    jwks_url: str | None = Field(default=None, min_length=1)
    jwks_file: FilePath | None = None
    algorithms: Words = ("RS256", "ES256", "EdDSA")
    organization_claim: str = Field(default="org_id", min_length=1)
    project_claim: str = Field(default="project_id", min_length=1)
    owner_claim: str = "sub"
    scope_claim: str = Field(default="scope", min_length=1)
    scope_prefix: str = ""
    projects_claim: str = Field(default="projects", min_length=1)
    leeway: Annotated[Number, Field(ge=0, le=300)] = 30.0
    timeout: Annotated[Number, Field(gt=0, le=60)] = 5.0
    key_lifespan: Annotated[Number, Field(gt=0, le=86_400)] = 300.0

    @model_validator(mode="after")
    def _check_algorithms(self) -> Self:
        wrong = [each for each in self.algorithms if each not in ASYMMETRIC_ALGORITHMS]
        if wrong or not self.algorithms:
            problem = f"{wrong[0]!r} cannot be taken" if wrong else "is empty"
            raise ConfigError("algorithms", problem, f"Use some of {', '.join(sorted(ASYMMETRIC_ALGORITHMS))}.")
        return self

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        if (self.jwks_url is None) == (self.jwks_file is None):
            raise ConfigError("jwks_url", "and jwks_file: exactly one is needed", "Say where the keys are.")
        if self.jwks_url is not None and not _is_safe_url(self.jwks_url):
            raise ConfigError("jwks_url", "must begin with https://", "Use https, or http on this machine.")
        return self


class ServerConfig(StrictModel):
    """Where and how `lamina serve` serves.

    Bodies are limited to `max_body_bytes`; imports, which are streamed, to `max_import_bytes`. A request asks for at
    most `max_results` at once. Answers of at least `gzip_minimum` bytes are compressed (None: never).
    `allowed_hosts` are the names that requests may call the server by; None is: its own address where that is on this
    machine, otherwise any. `cors_origins` are the web pages that may call it. `lamina serve` has a `rate_limit` by
    default where tokens are needed; `rate_limited` False switches it off. `request_timeout` (seconds; None: none)
    ends what takes too long, streams excepted; `graceful_timeout` is what running requests get at the end.
    `maintenance_interval` (seconds; 0: never) is how often one of all the processes that share the database cleans up.
    `mcp` serves the Model Context Protocol at `/mcp` too, with the same tokens (it needs the extra `mcp`).
    `backup_folder`, a folder of the server's machine, is where `POST /v1/backup` puts copies; None: it makes none.
    `metrics` says who reads `/metrics`: whoever reaches the server (`open`), tokens with the scope admin, or nobody.
    """

    host: str = Field(default="127.0.0.1", min_length=1)
    port: Annotated[WholeNumber, Field(ge=0, le=65_535)] = 8765
    uds: Path | None = None
    workers: Annotated[WholeNumber, Field(ge=1, le=64)] = 1
    max_body_bytes: Annotated[WholeNumber, Field(ge=1024)] = _MEBIBYTE
    max_import_bytes: Annotated[WholeNumber, Field(ge=1024)] = 1024 * _MEBIBYTE
    max_results: Annotated[WholeNumber, Field(ge=1, le=100)] = 100
    rate_limit: RateLimit | None = None
    rate_limited: bool = True
    gzip_minimum: Annotated[WholeNumber, Field(ge=0)] | None = 1024
    allowed_hosts: Words | None = None
    cors_origins: Words = ()
    jwt: JwtConfig | None = None
    request_timeout: Annotated[Number, Field(gt=0)] | None = 120.0
    graceful_timeout: Annotated[Number, Field(gt=0, le=3600)] = 30.0
    maintenance_interval: Annotated[Number, Field(ge=0, le=31_536_000)] = 21_600.0
    backup_folder: FilePath | None = None
    mcp: bool = False
    metrics: Literal["open", "admin", "off"] = "admin"
    log_format: Literal["text", "json"] = "text"

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        for name, given, pattern in (
            ("allowed_hosts", self.allowed_hosts or (), _HOST),
            ("cors_origins", self.cors_origins, _ORIGIN),
        ):
            wrong = next((each for each in given if pattern.fullmatch(each) is None), None)
            if wrong is not None:
                raise ConfigError(
                    name, f"{wrong!r} is none", "Write hosts as example.org, origins as https://example.org."
                )
        return self


def is_loopback(host: str) -> bool:
    """Whether the address is of this machine alone. A name other than `localhost` is not trusted to be."""
    bare = host.strip("[]").lower()
    if bare == "localhost":
        return True
    try:
        return ipaddress.ip_address(bare.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _is_safe_url(url: str) -> bool:
    scheme, _, rest = url.partition("://")
    host = rest.partition("/")[0].rpartition("@")[2]
    name = host.partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return bool(name) and (scheme == "https" or (scheme == "http" and is_loopback(name)))

"""Requests to a server: a token that stays secret, bounded waits, and repeating only what may be repeated."""

from __future__ import annotations

import asyncio
import json
import math
import random
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias
from urllib.parse import quote, urlsplit
from weakref import WeakKeyDictionary

import anyio
import httpx2

from lamina.client.failures import SERVER, error_of, readable
from lamina.errors import AdapterError, AdapterUnavailable, ConfigError, InvalidInput, LaminaError

__all__ = ["Request", "Transport", "checked_number", "encoded"]

_FIRST_WAIT: Final = 0.25
_LONGEST_WAIT: Final = 20.0
_AGAIN: Final = frozenset({429, 503, 504})
_IN_PROGRESS: Final = "in_progress"
_MOST_OF_A_PROBLEM: Final = 1024 * 1024
_JSON: Final = "application/json"
_Value: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked for. `path` are the segments of the path, as they are; None in `query` is left out.

    `reads` says of a POST that it changes nothing; any other gets a key, so that repeating it does it once.
    `timeout` takes the place of the client's.
    """

    method: str
    path: tuple[str, ...]
    query: Mapping[str, Any] | None = None
    body: Any = None
    content: bytes | AsyncIterator[bytes] | None = None
    content_type: str = _JSON
    if_match: str | None = None
    reads: bool = False
    timeout: float | None = None


class _TransientError(Exception):
    """A failure after which trying again may help, and what to raise if it does not."""

    def __init__(self, error: LaminaError, wait: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.wait = wait


class Transport:
    """One server, asked with one token; connections are kept for each event loop.

    Redirects are never followed, because the request carries the token.

    Raises:
        ConfigError: the address, the token or a limit cannot be used.
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None,
        timeout: float,
        max_retries: int,
        transport: httpx2.AsyncBaseTransport | None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self.base_url = _checked_url(base_url)
        self._token = None if token is None else _checked_token(token)
        self._timeout = checked_number("timeout", timeout, above=0)
        self._max_retries = int(checked_number("max_retries", max_retries, above=-1))
        self._transport = transport
        self._sleep = sleep
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncClient] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"Transport({self.base_url!r})"

    async def close(self) -> None:
        """Close this event loop's connections. Idempotent."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    async def ask(self, request: Request) -> Any:
        """The JSON that the server answers; None if it answers nothing.

        Raises:
            LaminaError: what the server says went wrong, as the library would have raised it.
            AdapterUnavailable: it cannot be reached, or is too busy, still so after the retries.
        """
        headers = self._headers(request)
        content = _content(request)
        is_stream = isinstance(content, AsyncIterator)
        seconds = self._seconds(request)
        tries = 1 if is_stream else self._max_retries + 1
        for tried in range(tries):
            try:
                with anyio.fail_after(None if is_stream else seconds), self._translated():
                    return await self._attempt(request, headers, content)
            except TimeoutError as error:
                late = AdapterUnavailable(SERVER, f"it did not answer within {seconds:g} s", self._remedy())
                failure = _TransientError(late)
                failure.__cause__ = error
            except _TransientError as error:
                failure = error
            if tried + 1 == tries:
                raise failure.error from failure
            await self._sleep(_wait(tried, failure.wait))
        raise AssertionError("the last attempt returns or raises")

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncGenerator[httpx2.Response, None]:
        """The answer as it comes; the time limit is for each wait. It is never repeated.

        Raises: as `ask`; AdapterUnavailable also if the stream breaks off.
        """
        try:
            with self._translated():
                async with self._client().stream(
                    request.method,
                    self._url(request),
                    params=_params(request),
                    content=_content(request),
                    headers=self._headers(request),
                    timeout=self._seconds(request),
                ) as response:
                    if not response.is_success:
                        self._refuse(response, await response.aread())
                    yield response
        except _TransientError as failure:
            raise failure.error from failure

    async def _attempt(
        self, request: Request, headers: Mapping[str, str], content: bytes | AsyncIterator[bytes] | None
    ) -> Any:
        seconds = self._seconds(request)
        unhurried = httpx2.Timeout(seconds, read=None, write=None)
        response = await self._client().request(
            request.method,
            self._url(request),
            params=_params(request),
            content=content,
            headers=headers,
            timeout=unhurried if isinstance(content, AsyncIterator) else seconds,
        )
        if not response.is_success:
            self._refuse(response, response.content)
        if not response.content:
            return None
        with readable():
            return json.loads(response.content)

    def _refuse(self, response: httpx2.Response, body: bytes) -> NoReturn:
        status = response.status_code
        if response.is_redirect:
            problem = f"it redirects elsewhere ({status}), which is not followed because the request carries the token"
            raise AdapterError(SERVER, problem, "Set base_url to the final address.")
        problem_json = _problem(response, body)
        error = error_of(status, problem_json)
        if status in _AGAIN or problem_json.get("code") == _IN_PROGRESS:
            raise _TransientError(error, _retry_after(response))
        raise error

    def _headers(self, request: Request) -> dict[str, str]:
        headers = {"Accept": _JSON}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if request.body is not None or request.content is not None:
            headers["Content-Type"] = request.content_type
        if request.if_match is not None:
            headers["If-Match"] = request.if_match
        if request.method != "GET" and not request.reads:
            headers["Idempotency-Key"] = uuid.uuid4().hex
        return headers

    def _seconds(self, request: Request) -> float:
        return self._timeout if request.timeout is None else request.timeout

    def _url(self, request: Request) -> str:
        return "/".join([self.base_url, *map(_segment, request.path)])

    def _client(self) -> httpx2.AsyncClient:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None or client.is_closed:
            client = httpx2.AsyncClient(timeout=self._timeout, follow_redirects=False, transport=self._transport)
            self._clients[loop] = client
        return client

    def _remedy(self) -> str:
        return f"Check that {self.base_url} is the right address, and that a server answers there."

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, httpx2.DecodingError) as error:
            raise AdapterError(SERVER, f"{type(error).__name__}: {error}", self._remedy()) from error
        except httpx2.TransportError as error:
            told = AdapterUnavailable(SERVER, f"it cannot be reached ({type(error).__name__})", self._remedy())
            raise _TransientError(told) from error


def _segment(text: str) -> str:
    """One segment of a path; an id of dots alone would be taken for a way up."""
    quoted = quote(text, safe="", errors="surrogatepass")
    return quoted.replace(".", "%2E") if quoted.strip(".") == "" else quoted


def _params(request: Request) -> list[tuple[str, _Value]]:
    params: list[tuple[str, _Value]] = []
    for name, value in (request.query or {}).items():
        values = value if isinstance(value, list | tuple) else [value]
        params += [
            (name, str(each).lower() if isinstance(each, bool) else str(each)) for each in values if each is not None
        ]
    return params


def _content(request: Request) -> bytes | AsyncIterator[bytes] | None:
    return request.content if request.body is None else encoded(request.body)


def encoded(value: Any) -> bytes:
    """The value as JSON.

    Raises:
        InvalidInput: it cannot be.
    """
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        problem = f"cannot be sent as JSON ({type(error).__name__})"
        raise InvalidInput("arguments", problem, "Use text, finite numbers, bool, None, lists and dicts.") from error


def _problem(response: httpx2.Response, body: bytes) -> Mapping[str, Any]:
    if "json" not in response.headers.get("content-type", "") or len(body) > _MOST_OF_A_PROBLEM:
        return {}
    try:
        read = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return _unwrapped(read) if isinstance(read, Mapping) else {}


def _unwrapped(read: Mapping[str, Any]) -> Mapping[str, Any]:
    """What went wrong, as a problem (RFC 9457) also where it came in the envelope of `/utils`."""
    told = read.get("error")
    if not isinstance(told, Mapping):
        return read
    return {"code": told.get("code"), "detail": told.get("message"), "errors": told.get("details")}


def _retry_after(response: httpx2.Response) -> float | None:
    told = response.headers.get("retry-after", "").strip()
    return min(float(told), _LONGEST_WAIT) if told.isascii() and told.isdigit() and len(told) < 10 else None  # noqa: PLR2004 - seconds


def _wait(tried: int, told: float | None) -> float:
    if told is not None:
        return told
    return min(_FIRST_WAIT * float(2**tried), _LONGEST_WAIT) * random.uniform(1, 1.5)  # noqa: S311 - no secret


def _checked_url(url: object) -> str:
    remedy = "Give the server's address, such as http://127.0.0.1:8765."
    if not isinstance(url, str):
        raise ConfigError("base_url", f"must be text, not {type(url).__name__}", remedy)
    try:
        parts = urlsplit(url)
        port_is_fine = parts.port is None or parts.port >= 0
    except ValueError as error:
        raise ConfigError("base_url", "is no address", remedy) from error
    if parts.scheme not in {"http", "https"} or not parts.hostname or not port_is_fine:
        raise ConfigError("base_url", "is no http(s) address", remedy)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ConfigError("base_url", "holds credentials, a query or a fragment", "Give the token as token.")
    return url.rstrip("/")


def _checked_token(token: object) -> str:
    if not isinstance(token, str) or not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError("token", "is empty or holds white space or characters beyond ASCII", "Copy it anew.")
    return token


def checked_number(field: str, number: object, *, above: float) -> float:
    """The number as it is given, if it is one.

    Raises:
        ConfigError: it is none, or not above that.
    """
    fits = isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)
    if not fits or not number > above:  # type: ignore[operator] # it is a number, or the first half held
        raise ConfigError(field, f"must be a number above {above}, not {number!r:.50}", "Give such a number.")
    return float(number)  # type: ignore[arg-type] # likewise

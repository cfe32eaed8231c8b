"""JSON over HTTP to a provider: time-outs, bounded retries, size limits, and a key that stays secret."""

from __future__ import annotations

import asyncio
import json
import random
import re
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import anyio

from lamina.errors import ConfigError, ProviderError, ProviderUnavailable
from lamina.ports.clock import Clock, utc_now

if TYPE_CHECKING:
    import httpx2

__all__ = ["HttpLimits", "JsonHttpClient"]

_SHOWN_CHARS: Final = 300
"""How much of an error body is shown: the provider's sentence, not a page of it."""
_ERROR_BODY_BYTES: Final = 16_384
_FIRST_WAIT: Final = 0.5
_LONGEST_WAIT: Final = 20.0
_TOO_MANY_REQUESTS: Final = 429
_BEARER = re.compile(r"(?i)bearer\s+\S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """Bounds of one call; times are in seconds."""

    timeout: float = 30.0
    """For one attempt, from connecting to the last byte; of a stream, for each wait."""
    max_retries: int = 3
    """Attempts after the first one, waiting 0.5, 1, 2 ... seconds, up to half as long again, or as long as told."""
    max_elapsed: float = 90.0
    """For all attempts and waits: none is begun that would end later."""
    max_response_bytes: int = 64 * 1024 * 1024

    def __post_init__(self) -> None:
        for field in ("timeout", "max_elapsed", "max_response_bytes"):
            _check_number(field, getattr(self, field), above=0)
        _check_number("max_retries", self.max_retries, above=-1)


class _TransientError(Exception):
    """A failure after which trying again may help, perhaps after a wait in seconds that the provider asked for."""

    def __init__(self, problem: str, wait: float | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.wait = wait


class JsonHttpClient:
    """Posts JSON to one base URL.

    Connections are kept per event loop, so that one client serves several loops, side by side or in turn.
    Redirects are never followed, because the request carries the key.

    Raises:
        ConfigError: the base URL or the key cannot be used.
    """

    def __init__(
        self,
        provider: str,
        base_url: str,
        *,
        api_key: str | None = None,
        limits: HttpLimits | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        clock: Clock = utc_now,
    ) -> None:
        self._provider = provider
        self._base_url = _checked_url(base_url)
        self._api_key = None if api_key is None else _checked_key(api_key)
        self._limits = limits or HttpLimits()
        self._sleep = sleep
        self._clock = clock
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncClient] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._provider!r}, {self._base_url!r})"

    async def post(self, path: str, payload: Mapping[str, Any]) -> Any:
        """The JSON that the provider answers.

        Raises:
            ProviderUnavailable: unreachable, timed out, 429 or 5xx, still so after the retries.
            ProviderError: any other status, or an answer that is no JSON or larger than the limit.
        """

        async def attempt() -> bytes:
            with anyio.fail_after(self._limits.timeout):
                async with self._opened(path, payload) as response:
                    return await self._read(response)

        body = await self._retried(attempt)
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise ProviderError(self._provider, f"its answer of {len(body)} bytes is no JSON") from error

    async def stream(self, path: str, payload: Mapping[str, Any]) -> AsyncGenerator[str, None]:
        """The data of each server-sent event. Only the opening is retried, so nothing comes twice.

        Raises: as `post`; ProviderUnavailable also if the stream breaks off.
        """
        import httpx2

        opened: list[Any] = []

        async def attempt() -> httpx2.Response:
            context = self._opened(path, payload)
            with anyio.fail_after(self._limits.timeout):
                response = await context.__aenter__()
            opened.append(context)
            return response

        response = await self._retried(attempt)
        try:
            with self._permanent(), self._translated():
                async for event in httpx2.EventSource(response, max_event_size=self._limits.max_response_bytes):
                    yield event.data
        finally:
            with anyio.CancelScope(shield=True):
                await opened[-1].__aexit__(None, None, None)

    async def close(self) -> None:
        """Close this event loop's connections; those of others end with their loops."""
        with self._lock:
            client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    async def _retried(self, attempt: Callable[[], Awaitable[Any]]) -> Any:
        deadline = time.monotonic() + self._limits.max_elapsed
        for tried in range(self._limits.max_retries + 1):
            try:
                with self._translated():
                    return await attempt()
            except _TransientError as failure:
                wait = min(_FIRST_WAIT * 2**tried, _LONGEST_WAIT) * random.uniform(1, 1.5)  # noqa: S311 - no secret
                wait = wait if failure.wait is None else failure.wait
                if tried == self._limits.max_retries or time.monotonic() + wait > deadline:
                    asked = "" if failure.wait is None else f"; it asks to wait {failure.wait:.0f} s"
                    problem = f"{failure.problem}{asked}, in {tried + 1} attempts"
                    remedy = f"Check that {self._base_url} is the right address, and that it answers."
                    raise ProviderUnavailable(self._provider, problem, remedy) from failure
            await self._sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    @asynccontextmanager
    async def _opened(self, path: str, payload: Mapping[str, Any]) -> AsyncIterator[httpx2.Response]:
        url = f"{self._base_url}/{path}"
        headers = {} if self._api_key is None else {"Authorization": f"Bearer {self._api_key}"}
        async with self._client().stream("POST", url, json=payload, headers=headers) as response:
            if not response.is_success:
                await self._refuse(response)
            yield response

    async def _refuse(self, response: httpx2.Response) -> NoReturn:
        status = response.status_code
        if response.is_redirect:
            raise ProviderError(
                self._provider,
                f"it redirects elsewhere ({status}), which is not followed because the request carries credentials",
                "Set base_url to the final address.",
            )
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > _ERROR_BODY_BYTES:
                break
        problem = f"it answered {status}: {self._shown(bytes(body))}"
        if status == _TOO_MANY_REQUESTS or response.is_server_error:
            raise _TransientError(problem, _retry_after(response.headers.get("retry-after"), self._clock()))
        raise ProviderError(self._provider, problem)

    async def _read(self, response: httpx2.Response) -> bytes:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > self._limits.max_response_bytes:
                raise ProviderError(self._provider, f"its answer exceeds {self._limits.max_response_bytes} bytes")
        return bytes(body)

    def _client(self) -> httpx2.AsyncClient:
        import httpx2

        loop = asyncio.get_running_loop()
        with self._lock:
            client = self._clients.get(loop)
            if client is None:
                client = httpx2.AsyncClient(timeout=self._limits.timeout, follow_redirects=False)
                self._clients[loop] = client
        return client

    def _shown(self, body: bytes) -> str:
        text = " ".join(body[:_ERROR_BODY_BYTES].decode(errors="replace").split())
        if not text:
            return "nothing"
        return repr(self._redacted(text)[:_SHOWN_CHARS])

    def _redacted(self, text: str) -> str:
        if self._api_key:
            text = text.replace(self._api_key, "[key]")
        return _BEARER.sub("Bearer [key]", text)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        import httpx2

        try:
            yield
        except (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, httpx2.SSEError, httpx2.DecodingError) as error:
            raise ProviderError(self._provider, self._redacted(f"{type(error).__name__}: {error}")) from error
        except (httpx2.TimeoutException, TimeoutError) as error:
            raise _TransientError(f"it did not answer within {self._limits.timeout:g} s") from error
        except httpx2.TransportError as error:
            raise _TransientError(self._redacted(f"{type(error).__name__}: {error}")) from error

    @contextmanager
    def _permanent(self) -> Iterator[None]:
        try:
            yield
        except _TransientError as failure:
            raise ProviderUnavailable(self._provider, f"the stream broke off: {failure.problem}") from failure


def _retry_after(header: str | None, now: datetime) -> float | None:
    """The seconds that a Retry-After asks to wait, given in seconds or as a date; None if it says nothing usable."""
    if header is None:
        return None
    if header.strip().isdecimal():
        return float(header)
    try:
        until = parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (until - now).total_seconds())


def _checked_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigError("base_url", "is no http(s) address", "Give one such as http://localhost:11434/v1.")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ConfigError("base_url", "holds credentials, a query or a fragment", "Give the key as api_key.")
    return url.rstrip("/")


def _checked_key(key: str) -> str:
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError("api_key", "is empty or holds white space or characters beyond ASCII", "Copy the key anew.")
    return key


def _check_number(field: str, number: object, *, above: float) -> None:
    if isinstance(number, bool) or not isinstance(number, int | float) or not number > above:
        raise ConfigError(field, f"must be a number above {above}, not {number!r}", "Give such a number.")

"""One function call over HTTP: keys that go to one host only, time-outs, and retries that repeat nothing."""

from __future__ import annotations

import json
import random
import ssl
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import httpx2

from lamina.adapters._shared.code_word import code_word
from lamina.adapters.supabase.failures import Refused

__all__ = ["Rest"]

_FIRST_WAIT: Final = 0.1
_LONGEST_WAIT: Final = 10.0
_TRANSIENT: Final = (httpx2.TimeoutException, httpx2.NetworkError, httpx2.RemoteProtocolError)
_HEADERS: Final = {"Content-Type": "application/json", "Accept": "application/json"}


class Rest:
    """Posts JSON to one address, from any thread. Redirects are not followed, because the request carries keys.

    Every request may be repeated: reads as they are, and commits because each has a token that the database knows
    after the first time.

    Args:
        headers: Asked for at every request, since the token of a user is renewed now and then.
        timeout: Seconds for one attempt, from connecting to the last byte.
        retries: Attempts after the first one. A wait that is asked for is kept, unless it is longer than an attempt.
    """

    def __init__(
        self,
        base_url: str,
        headers: Callable[[], Mapping[str, str]],
        *,
        timeout: float,
        retries: int,
        connections: int,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._base_url = base_url
        self._headers = headers
        self._timeout = timeout
        self._retries = retries
        self._sleep = sleep
        limits = httpx2.Limits(max_connections=connections, max_keepalive_connections=connections)
        self._client = httpx2.Client(timeout=timeout, limits=limits, follow_redirects=False, verify=_ssl_context())

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def post(self, path: str, arguments: Mapping[str, Any]) -> Any:
        """What the answer holds.

        Raises:
            Refused: it is no success, after the retries if they could help.
            httpx2.TransportError: there was none.
        """
        body = json.dumps(arguments, ensure_ascii=False, separators=(",", ":")).encode()
        patience = time.monotonic() + self._timeout * (1 + self._retries)
        for tried in range(self._retries + 1):
            wait = min(_FIRST_WAIT * 4**tried, _LONGEST_WAIT) * random.uniform(1, 1.5)  # noqa: S311 - no secret
            try:
                return self._attempt(path, body)
            except Refused as refusal:
                if not refusal.may_pass:
                    raise
                wait = wait if refusal.wait is None else refusal.wait
                failure: Exception = refusal
            except _TRANSIENT as error:
                failure = error
            if tried == self._retries or wait > self._timeout or time.monotonic() + wait > patience:
                raise failure
            self._sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _attempt(self, path: str, body: bytes) -> Any:
        until = time.monotonic() + self._timeout
        headers = {**_HEADERS, **self._headers()}
        with self._client.stream("POST", f"{self._base_url}/{path}", content=body, headers=headers) as response:
            read = bytearray()
            for chunk in response.iter_bytes():
                read += chunk
                if time.monotonic() > until:  # each wait was short enough, but not all of them
                    raise httpx2.ReadTimeout("the answer took too long", request=response.request)
        if not response.is_success:
            raise _refusal(response.status_code, bytes(read), response.headers.get("retry-after", ""))
        try:
            return json.loads(read) if read else None
        except (ValueError, RecursionError):
            raise Refused(response.status_code, message="the answer is no JSON") from None


def _refusal(status: int, body: bytes, retry_after: str) -> Refused:
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        said = {}
    fields = said if isinstance(said, dict) else {}
    code = code_word(fields.get("code"))
    message, details = (str(fields.get(name) or "") for name in ("message", "details"))
    wait = float(retry_after) if retry_after.strip().isdecimal() else None
    return Refused(status, code, message, details=details, wait=wait)


@lru_cache(maxsize=1)
def _ssl_context() -> ssl.SSLContext:
    """Made once for all adapters: it takes longer than a call."""
    return httpx2.create_ssl_context()

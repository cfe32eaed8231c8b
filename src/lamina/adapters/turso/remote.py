"""A database behind a URL: Hrana over HTTP, one request for each read and for each transaction."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final

import httpx2

from lamina.adapters._shared.code_word import code_word
from lamina.adapters._shared.patience import attempts
from lamina.adapters._shared.records import Stale
from lamina.adapters._shared.where_sql import Sql
from lamina.adapters.turso.failures import BUSY, Failed
from lamina.adapters.turso.runner import STALE, Row

__all__ = ["Remote"]

_PATH: Final = "/v2/pipeline"
_CLOSE: Final = {"type": "close"}


class Remote:
    """A `Runner` over HTTP. Connections are kept open and shared; each request is a stream of its own.

    Args:
        url: The database's, with the scheme http or https.
        token: Sent as a bearer token, if there is one.
        place: Where it is, for messages.
        timeout: Seconds to wait for an answer.
        connect_timeout: Seconds to wait for a connection.
        connections: How many may be open at the same time.
    """

    def __init__(
        self, url: str, token: str | None, place: str, *, timeout: float, connect_timeout: float, connections: int
    ) -> None:
        self.place = place
        self.url = url
        self._patience = timeout
        self._make: Callable[[], httpx2.Client] = lambda: httpx2.Client(
            base_url=url,
            headers={} if token is None else {"Authorization": f"Bearer {token}"},
            timeout=httpx2.Timeout(timeout, connect=connect_timeout),
            limits=httpx2.Limits(max_connections=connections, max_keepalive_connections=connections),
            verify=url.startswith("https:"),  # or it would read the authorities' certificates for nothing
            follow_redirects=False,  # a token goes to nobody but whom it is for
        )
        self._client: httpx2.Client | None = None

    def open(self) -> None:
        self._client = self._make()

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def fresh(self) -> AbstractContextManager[None]:
        return nullcontext()

    def read(self, sql: Sql) -> list[Row]:
        requests: list[dict[str, Any]] = [{"type": "execute", "stmt": _statement(sql)}, _CLOSE]
        try:
            answer = self._ask(requests)
        except (httpx2.ReadError, httpx2.RemoteProtocolError):
            answer = self._ask(
                requests
            )  # the server had closed a connection that was kept open; a read may be repeated
        with _understood():
            return _rows(answer["result"])

    def write(self, changes: Sequence[Sql], guard: Sql | None = None) -> list[list[Row]]:
        for _ in attempts(self._patience, first=0.01, longest=0.5):
            try:
                return self._transact(changes, guard)
            except Failed as error:  # another writer was before it, so that nothing was written: it may be repeated
                if not error.is_busy:
                    raise
        raise Failed("", BUSY)

    def _transact(self, changes: Sequence[Sql], guard: Sql | None) -> list[list[Row]]:
        sqls = [Sql("BEGIN IMMEDIATE"), *([] if guard is None else [guard]), *changes, Sql("COMMIT")]
        steps: list[dict[str, Any]] = [{"stmt": _statement(sql)} for sql in sqls]
        for number, step in enumerate(steps[1:]):
            step["condition"] = _ok(number)
        steps.append({"stmt": _statement(Sql("ROLLBACK")), "condition": _if_begun_and_not(len(sqls) - 1)})
        answer = self._ask([{"type": "batch", "batch": {"steps": steps}}, _CLOSE])
        with _understood():
            for number, error in enumerate(answer["result"]["step_errors"][: len(sqls)]):
                if error is not None:
                    if guard is not None and number == 1 and STALE in error["message"]:
                        raise Stale
                    raise _failed(error)
            first = len(sqls) - 1 - len(changes)
            return [_rows(result) for result in answer["result"]["step_results"][first : first + len(changes)]]

    def _ask(self, requests: list[dict[str, Any]]) -> dict[str, Any]:
        """The response to the first of the requests, of which the last one closes the stream."""
        if self._client is None:
            raise Failed("it is closed")
        response = self._client.post(_PATH, json={"baton": None, "requests": requests})
        if response.status_code != httpx2.codes.OK:
            raise Failed("", status=response.status_code)
        with _understood():
            result = response.json()["results"][0]
            if result["type"] != "ok":
                raise _failed(result["error"])
            answer: dict[str, Any] = result["response"]
            return answer


@contextmanager
def _understood() -> Iterator[None]:
    """What is no answer in Hrana is a failure that says so."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise Failed("not Hrana", status=httpx2.codes.IM_A_TEAPOT) from error


def _failed(error: dict[str, Any]) -> Failed:
    return Failed(str(error.get("message")), code_word(error.get("code")))


def _ok(step: int) -> dict[str, Any]:
    return {"type": "ok", "step": step}


def _if_begun_and_not(step: int) -> dict[str, Any]:
    return {"type": "and", "conds": [_ok(0), {"type": "not", "cond": _ok(step)}]}


def _statement(sql: Sql) -> dict[str, Any]:
    return {"sql": sql.text, "args": [_encoded(value) for value in sql.parameters]}


def _encoded(value: Any) -> dict[str, Any]:
    match value:
        case None:
            return {"type": "null"}
        case int():
            return {"type": "integer", "value": str(int(value))}  # as text: JSON's readers stop at 53 bits
        case float():
            return {"type": "float", "value": value}
        case bytes():
            return {"type": "blob", "base64": base64.b64encode(value).decode()}
        case _:
            return {"type": "text", "value": value}


def _rows(result: dict[str, Any]) -> list[Row]:
    return [tuple(_decoded(value) for value in row) for row in result["rows"]]


def _decoded(value: dict[str, Any]) -> Any:
    match value["type"]:
        case "integer":
            return int(value["value"])
        case "blob":
            data = value["base64"]
            return base64.b64decode(data + "=" * (-len(data) % 4))  # servers leave the padding out
        case _:
            return value.get("value")

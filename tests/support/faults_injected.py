"""Parts that do as they should until the n-th call, which fails in a way that is named; each counts that it did."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import pytest

from lamina.errors import ProviderError, ProviderUnavailable
from lamina.ports.language_model import ChatMessage, ChatRole, Completion, Usage
from lamina.testing import EchoModel, HashingEmbedder


class NthCall:
    """Counts calls while it is armed, and says of one that it is to fail, and how. Any thread may ask."""

    def __init__(self) -> None:
        self.fired = 0
        self.calls = 0
        self._at = 0
        self._kind = ""
        self._counting = threading.Lock()

    def arm(self, at: int, kind: str) -> None:
        """From now on, the call of this number (1 is the next) is to fail."""
        with self._counting:
            self.calls, self.fired, self._at, self._kind = 0, 0, at, kind

    def disarm(self) -> bool:
        """Let all calls be; whether one was to fail."""
        with self._counting:
            self._at = 0
            return self.fired > 0

    def due(self) -> str | None:
        """The kind of failure of this call, if it is the one."""
        with self._counting:
            if not self._at:
                return None
            self.calls += 1
            if self.calls != self._at:
                return None
            self.fired += 1
            return self._kind


# The database: the statements of an SQLite file

SQL_FAILURES: Final = {
    "disk I/O error": (sqlite3.SQLITE_IOERR, False),
    "database or disk is full": (sqlite3.SQLITE_FULL, True),
    "database is locked": (sqlite3.SQLITE_BUSY, False),
}
"""What SQLite says, its code, and whether it has ended the transaction by itself, as it may."""


def fail_statements(patch: pytest.MonkeyPatch, nth: NthCall) -> None:
    """Connections that are opened from now on count their statements, and fail at the one that is due.

    `ROLLBACK` does not count: it needs neither room nor a lock.
    """

    class Failing(sqlite3.Connection):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            self._fail_if_due(sql)
            return super().execute(sql, *parameters)

        def executemany(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            self._fail_if_due(sql)
            return super().executemany(sql, *parameters)

        def _fail_if_due(self, sql: str) -> None:
            if sql.startswith("ROLLBACK") or (kind := nth.due()) is None:
                return
            code, ends_transaction = SQL_FAILURES[kind]
            if ends_transaction and self.in_transaction:
                super().execute("ROLLBACK")
            error = sqlite3.OperationalError(kind)
            error.sqlite_errorcode = code
            raise error

    patch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Failing))


# The embedder


def _refused(_: list[Any]) -> list[Any]:
    raise ProviderUnavailable("The embedder", "connection refused")


def _broken(_: list[Any]) -> list[Any]:
    raise ZeroDivisionError("the host's own embedder has a fault of its own")


EMBEDDER_FAILURES: Final[Mapping[str, Callable[[list[Any]], list[Any]]]] = {
    "refused": _refused,
    "broken": _broken,
    "zeros": lambda vectors: [[0.0] * len(each) for each in vectors],
    "NaN": lambda vectors: [[float("nan")] * len(each) for each in vectors],
    "infinite": lambda vectors: [[float("inf")] * len(each) for each in vectors],
    "other dimension": lambda vectors: [list(each)[:-1] for each in vectors],
    "one dimension more in the last": lambda vectors: [*vectors[:-1], [*vectors[-1], 0.5]],
    "one missing": lambda vectors: vectors[:-1],
    "one too many": lambda vectors: [*vectors, vectors[-1]],
    "no numbers": lambda vectors: ["zero"] * len(vectors),
    "nothing": lambda vectors: [None] * len(vectors),
}
"""What is done to the vectors that were to be answered."""

NEVER: Final = "never answers"


class FailingEmbedder(HashingEmbedder):
    """A real one, but for the call that is due."""

    def __init__(self, nth: NthCall) -> None:
        super().__init__(64)
        self._nth = nth

    async def embed_documents(self, texts: Sequence[str]) -> list[Any]:
        return await self._spoilt(await super().embed_documents(texts))

    async def embed_query(self, text: str) -> Any:
        answered = await self._spoilt([await super().embed_query(text)])
        return answered[0] if answered else None

    async def _spoilt(self, vectors: list[Any]) -> list[Any]:
        kind = self._nth.due()
        if kind == NEVER:
            await asyncio.Event().wait()
        return vectors if kind is None else EMBEDDER_FAILURES[kind](vectors)


# The language model


class SteadyModel(EchoModel):
    """Answers what was asked for, always alike: a summary, what the user said as a fact, or one word."""

    async def complete(
        self, messages: Sequence[ChatMessage], *, schema: Mapping[str, Any] | None = None, max_tokens: int | None = None
    ) -> Completion:
        data = self._object(messages, schema)
        text = "Noted." if data is None else str(data)
        return Completion(text, Usage(1, 1), data)

    def _object(self, messages: Sequence[ChatMessage], schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
        if schema is None:
            return None
        if "summary" in schema["properties"]:
            return {"summary": "They spoke of the harbour.", "topics": ["harbour"], "facts": []}
        said = next(each.content for each in reversed(messages) if each.role is ChatRole.USER)
        return {"facts": [{"content": said, "tags": ["said"], "relevance": 0.8, "layer": "longterm"}]}


class _Lost(Exception):
    """Of a host's own code."""


MODEL_FAILURES: Final[Mapping[str, object]] = {
    "unavailable": ProviderUnavailable("The model", "503"),
    "refusing": ProviderError("The model", "400"),
    "broken": _Lost("a fault of the host's own"),
    "never answers": None,
    "no object": "Sorry, I cannot.",
    "an empty object": {},
    "nulls": {"summary": None, "topics": None, "facts": None},
    "wrong types": {"summary": ["a"], "topics": "all", "facts": {"content": 3}},
    "nothing said": {"summary": "  ", "topics": [], "facts": []},
    "a list in a list": {"summary": "s", "topics": [["a"]], "facts": [["b"], 3, None, {"content": None}]},
    "NaN": {"summary": float("nan"), "facts": [{"content": "x", "relevance": float("nan")}]},
    "a lone surrogate": {"summary": "lone \ud83d", "topics": ["\udc00"], "facts": []},
    "a megabyte": {"summary": "long " * 200_000, "topics": ["t" * 100_000], "facts": []},
    "invented ids": {"summary": "As [#99] of msg_999999 says.", "topics": [], "facts": [], "ids": ["msg_999999"]},
}
"""What is raised or answered where a model is asked; what is answered where text is asked for is its text."""


class FailingModel(SteadyModel):
    """A steady one, but for the call that is due."""

    def __init__(self, nth: NthCall) -> None:
        super().__init__()
        self._nth = nth

    async def complete(
        self, messages: Sequence[ChatMessage], *, schema: Mapping[str, Any] | None = None, max_tokens: int | None = None
    ) -> Completion:
        kind = self._nth.due()
        if kind is None:
            return await super().complete(messages, schema=schema, max_tokens=max_tokens)
        given = MODEL_FAILURES[kind]
        if given is None:
            await asyncio.Event().wait()
        if isinstance(given, Exception):
            raise given
        data = dict(given) if isinstance(given, Mapping) else None
        return Completion(str(given), Usage(1, 1), data)

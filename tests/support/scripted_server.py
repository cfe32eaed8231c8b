"""A real HTTP server on loopback that answers what a test scripts, well or badly.

    async def test_a_failing_summariser_leaves_history_alone(server):
        model = OpenAICompatibleLanguageModel("m", base_url=server.url, max_retries=0, timeout=1)
        server.plays(server.chat("first answer"), server.error(503), server.chat('{"facts": []}'))

Each request gets the next reply of the script, and from then on the last one. `server.requests` holds what
came. Replies: `chat` and `pieces` (well), `json`, `raw`, `events` (anything), `error`, `hangs`, `resets`, `slow`,
`drips`, `cut` (badly). Two collections are there to parametrise a test with:

- `FAILURES`: every way not to answer at all; the caller must get a ProviderError within its timeout.
- `RUBBISH`: answers that a model gave, and that are no object of a schema; each is one `content`.

A test that plays `hangs`, `slow` or `drips` gives its client a timeout of a second or so.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

Reply = Callable[["Request", asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class ScriptedServer:
    """Answers each request with the next reply of the script, and then on and on with the last one."""

    script: list[Reply] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    url: str = ""

    def plays(self, *replies: Reply) -> None:
        self.script = list(replies)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await self._read(reader):
                self.requests.append(request)
                reply = self.script.pop(0) if len(self.script) > 1 else self.script[0]
                await reply(request, writer)
                if writer.is_closing():
                    break
        except ConnectionError:
            pass  # the client went away, as some tests make it do
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Request | None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except asyncio.IncompleteReadError:
            return None
        first, *lines = head.split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines) if name}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        return Request(first.split(" ")[1], headers, body)

    # Replies ------------------------------------------------------------------------------

    @staticmethod
    def raw(body: bytes, status: int = 200, *, missing: int = 0, **headers: str) -> Reply:
        """The body as it is, `missing` bytes less than announced."""

        async def reply(request: Request, writer: asyncio.StreamWriter) -> None:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            lines = {"content-type": "application/json", "content-length": str(len(body) + missing), **named}
            head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
            writer.write(f"HTTP/1.1 {status} Scripted\r\n{head}\r\n".encode() + body)
            await writer.drain()
            if missing:
                writer.close()

        return reply

    @classmethod
    def json(cls, payload: Any, status: int = 200, **headers: str) -> Reply:
        return cls.raw(json.dumps(payload).encode(), status, **headers)

    @classmethod
    def chat(cls, content: str | None, **message: Any) -> Reply:
        usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content, **message}}
        common = {"id": "c1", "object": "chat.completion", "created": 1, "model": "scripted"}
        return cls.json({**common, "choices": [choice], "usage": usage})

    @classmethod
    def events(cls, *data: str, **headers: str) -> Reply:
        body = "".join(f"data: {each}\n\n" for each in data).encode()
        return cls.raw(body, content_type="text/event-stream", **headers)

    @classmethod
    def pieces(cls, *texts: str, done: bool = True) -> Reply:
        events = [json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}) for text in texts]
        return cls.events(*events, *(["[DONE]"] if done else []))

    @classmethod
    def embeds(
        cls, vector_of: Callable[[str], Any], *, change: Callable[[list[Any]], list[Any]] | None = None
    ) -> Reply:
        """One item per text; `change` may then spoil the list."""

        async def reply(request: Request, writer: asyncio.StreamWriter) -> None:
            texts = request.json["input"]
            items: list[Any] = [{"index": number, "embedding": vector_of(text)} for number, text in enumerate(texts)]
            await cls.json({"data": change(items) if change else items})(request, writer)

        return reply

    @classmethod
    def error(cls, status: int, *, retry_after: float | None = None) -> Reply:
        headers = {} if retry_after is None else {"retry_after": str(retry_after)}
        return cls.json({"error": {"message": "as scripted", "type": "server_error"}}, status, **headers)

    @staticmethod
    def slow(seconds: float, reply: Reply) -> Reply:
        """The reply, after a while."""

        async def late(request: Request, writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(seconds)
            await reply(request, writer)

        return late

    @classmethod
    def cut(cls, *texts: str) -> Reply:
        """A stream that says these pieces, and whose connection then breaks."""

        async def reply(request: Request, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            for text in texts:
                event = json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]})
                data = f"data: {event}\n\n".encode()
                writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
                await writer.drain()
            writer.close()

        return reply

    @staticmethod
    async def hangs(request: Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3600)

    @staticmethod
    async def resets(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    @staticmethod
    def drips(body: bytes) -> Reply:
        """One byte now and then: every wait is short, the whole is endless."""

        async def reply(request: Request, writer: asyncio.StreamWriter) -> None:
            writer.write(f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\n\r\n".encode())
            for byte in body:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.02)

        return reply


FAILURES: dict[str, Reply] = {
    "429 with Retry-After": ScriptedServer.error(429, retry_after=0),
    "500": ScriptedServer.error(500),
    "503": ScriptedServer.error(503),
    "401": ScriptedServer.error(401),
    "hangs": ScriptedServer.hangs,
    "breaks the connection": ScriptedServer.resets,
    "drips": ScriptedServer.drips(b'{"choices": []}' + b" " * 10_000),
    "half a body": ScriptedServer.raw(b'{"choices": [{"message": {"content": "yes', missing=100),
    "HTML with status 200": ScriptedServer.raw(b"<html><body>Bad gateway</body></html>", content_type="text/html"),
    "JSON of another shape": ScriptedServer.json({"answer": "yes"}),
    "no choices": ScriptedServer.json({"choices": []}),
    "no content": ScriptedServer.chat(None),
    "an empty answer": ScriptedServer.chat(""),
    "a blank answer": ScriptedServer.chat(" \n\t "),
}
"""Ways to give no answer to a chat completion, whatever was asked."""

RUBBISH: dict[str, str] = {
    "cut off": '{"summary": "The spare key is under the bl',
    "prose": "Sure! Here is the summary that you asked for. The spare key is under the blue pot.",
    "prose around the object": 'Here it is:\n```json\n{"summary": 1}\n```\nAnything else?',
    "a trailing comma": '{"summary": "x",}',
    "single quotes": "{'summary': 'x'}",
    "two objects": '{"a": 1}\n{"b": 2}',
    "a list": '["x"]',
    "another object": '{"unexpected": true}',
    "another type": '{"summary": {"nested": ["x"]}, "facts": "x", "n": "many"}',
    "null": "null",
    "NaN": '{"summary": NaN, "n": NaN}',
    "too large a number": '{"summary": 1e999, "n": 1e999}',
    "a broken escape": '{"summary": "\\ud83d", "n": "\\u12"}',
    "half a surrogate pair": "\ud83d\ud83d",
    "another language": "对不起，我不能提供摘要。备用钥匙在蓝色花盆下面。",
    "a megabyte": "The spare key is under the blue pot. " * 28_000,
    "nested without end": '{"summary":' * 5_000,
    "NUL and control characters": '{"summary": "a\x00\x01b"}',
}
"""Answers of a model that are not the object which it was asked for, each bad in its own way."""


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    scripted = ScriptedServer()
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.get_running_loop().create_task(scripted.serve(reader, writer)))

    listening = await asyncio.start_server(accept, "127.0.0.1", 0, limit=8 * 1024 * 1024)
    port = listening.sockets[0].getsockname()[1]
    scripted.url = f"http://127.0.0.1:{port}/v1"
    yield scripted
    listening.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await listening.wait_closed()


@pytest.fixture
def unused_url() -> str:
    """An address on loopback where nobody listens."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/v1"

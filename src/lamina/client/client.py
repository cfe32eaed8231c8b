"""The async client of a server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Final, Self

import httpx2

from lamina.client.context_reading import context_of, result_of
from lamina.client.documents import Documents
from lamina.client.failures import SERVER, error_of, readable
from lamina.client.memories import Memories
from lamina.client.packs import Packs
from lamina.client.resource import sendable
from lamina.client.threads import Threads
from lamina.client.transport import Request, Transport, checked_number
from lamina.domain.context import ComputedContext
from lamina.domain.context_form import Form
from lamina.domain.intent import IntentResult
from lamina.domain.text import check_name
from lamina.errors import AdapterUnavailable

__all__ = ["LaminaClient"]

_MOST_OF_AN_EVENT: Final = 64 * 1024 * 1024
_NDJSON: Final = "application/x-ndjson"


class LaminaClient:
    """One server, asked as one token allows; for all calls that say nothing else, on behalf of `owner`.

    `memories`, `threads`, `documents` and `packs` have the verbs of the library. Use it as an async context manager, or
    call `close`. A call waits `timeout` seconds for each attempt, for a model's answer `answer_timeout`. Every call but
    the streams may be repeated without harm, and is, at most `max_retries` times, where the server cannot be reached
    or is too busy. `transport` takes the place of the network, as for a server in this process.

    Raises:
        ConfigError: the address, the token or a limit cannot be used.
        InvalidInput: nobody can have the owner's name.
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None = None,
        owner: str | None = None,
        timeout: float = 30.0,
        answer_timeout: float = 300.0,
        max_retries: int = 3,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self.owner = None if owner is None else check_name("owner", owner)
        self._transport = Transport(
            base_url, token=token, timeout=timeout, max_retries=max_retries, transport=transport
        )
        self._answer_timeout = checked_number("answer_timeout", answer_timeout, above=0)
        self.memories = Memories(self._transport, self.owner)
        self.threads = Threads(self._transport, self.owner)
        self.documents = Documents(self._transport, self.owner)
        self.packs = Packs(self._transport, self.owner)

    def __repr__(self) -> str:
        return f"LaminaClient({self._transport.base_url!r}, owner={self.owner!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections of this event loop. Idempotent; the next call opens new ones."""
        await self._transport.close()

    async def context(
        self,
        goal: str,
        *,
        owner: str | None = None,
        thread_id: str | None = None,
        namespace: str | None = None,
        token_budget: int | None = None,
        model: str | None = None,
        system: str = "",
        tools: Sequence[Mapping[str, Any]] = (),
        reserved_tokens: int = 0,
        form: Form | str | None = None,
        touch: bool = True,
        intent_id: str | None = None,
    ) -> ComputedContext:
        """What an agent is to see for this goal: see `lamina.ContextEngine.compute`. Render it with its own methods.

        Raises:
            InvalidInput: a field has a value that cannot be used.
            ThreadNotFound: there is no such thread, or it is another owner's.
        """
        body = {
            "goal": goal,
            "owner": self._for(owner),
            "thread_id": thread_id,
            "namespace": namespace,
            "token_budget": token_budget,
            "model": model,
            "system": system,
            "tools": list(tools),
            "reserved_tokens": reserved_tokens,
            "form": form,
            "touch": touch,
            "intent_id": intent_id,
        }
        answer = await self._transport.ask(
            Request(method="POST", path=("v1", "context"), body=sendable(body), reads=True)
        )
        with readable():
            return context_of(answer)

    async def submit(
        self,
        goal: str,
        *,
        owner: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        thread_id: str | None = None,
        agent: str | None = None,
        namespace: str | None = None,
        context: bool = False,
    ) -> IntentResult:
        """Serve a goal with the server's agents and model: see `lamina.Kernel.submit`.

        With `context` the computed context comes along.

        Raises:
            NoModelConfiguredError: the server has no language model.
            ThreadNotFound: the thread is another owner's.
            ThreadArchivedError: the thread is archived.
        """
        fields = {"metadata": metadata, "thread_id": thread_id, "agent": agent, "namespace": namespace}
        body = sendable({"goal": goal, "owner": self._for(owner), "context": context, **fields})
        answer = await self._transport.ask(
            Request(method="POST", path=("v1", "intents"), body=body, timeout=self._answer_timeout)
        )
        with readable():
            return result_of(answer)

    async def stream(
        self,
        goal: str,
        *,
        owner: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        thread_id: str | None = None,
        agent: str | None = None,
        namespace: str | None = None,
        context: bool = False,
    ) -> AsyncIterator[str | IntentResult]:
        """As `submit`, with the answer in pieces as they come, and the result last.

        Whoever stops before the result has been given leaves nothing in the thread.

        Raises:
            AdapterUnavailable: the stream broke off: whether the exchange was kept is not known.
        """
        fields = {"metadata": metadata, "thread_id": thread_id, "agent": agent, "namespace": namespace}
        body = sendable({"goal": goal, "owner": self._for(owner), "context": context, **fields})
        asked = Request(
            method="POST", path=("v1", "intents", "stream"), body=body, timeout=self._answer_timeout, reads=True
        )
        async with self._transport.stream(asked) as response:
            async for event in httpx2.EventSource(response, max_event_size=_MOST_OF_AN_EVENT):
                piece = _piece(event.event, event.data)
                yield piece
                if isinstance(piece, IntentResult):
                    return
        raise AdapterUnavailable(SERVER, "the stream ended before its result", "See in the thread what was kept.")

    async def export(self, *, owner: str | None = None, embeddings: bool = False) -> AsyncIterator[str]:
        """The tenant's memories, or those that the owner sees, as lines of JSON; the token needs the scope admin.

        Raises:
            AdapterUnavailable: the stream broke off: what came until then is not all.
        """
        query = {"owner": self._for(owner), "embeddings": embeddings}
        async with self._transport.stream(Request(method="GET", path=("v1", "export"), query=query)) as response:
            async for line in response.aiter_lines():
                if line:
                    yield line

    async def import_lines(
        self, lines: Iterable[str], *, replace: bool = False, skip_bad_lines: bool = False, revive: bool = False
    ) -> dict[str, Any]:
        """Take in lines that `export` gave, or others that hold a `content`; what was done, in numbers.

        What was deleted since, or whose owner was erased, is left out unless `revive` asks for it.
        All are read before anything is written. It is not repeated if it fails: importing anew does no harm.

        Raises:
            InvalidInput: a line cannot be read, and so nothing was written.
        """

        async def encoded() -> AsyncIterator[bytes]:
            for line in lines:
                yield line.rstrip("\n").encode("utf-8", "surrogatepass") + b"\n"

        query = {"replace": replace, "skip_bad_lines": skip_bad_lines, "revive": revive}
        asked = Request(
            method="POST", path=("v1", "import"), query=query, content=encoded(), content_type=_NDJSON, reads=True
        )
        report: dict[str, Any] = await self._transport.ask(asked)
        return report

    async def run_maintenance(self, *, decay: bool = False) -> dict[str, Any]:
        """One pass of maintenance over the tenant, and what it did; the token needs the scope admin."""
        asked = Request(method="POST", path=("v1", "maintenance"), body={"decay": decay})
        report: dict[str, Any] = await self._transport.ask(asked)
        return report

    async def backup(self, name: str | None = None) -> dict[str, Any]:
        """Copy the store into the server's `backup_folder`; its name and bytes. The token needs the scope admin.

        Raises:
            Conflict: there is a backup of this name.
            Unsupported: the server has no such folder.
            InvalidInput: the name is none.
        """
        asked = Request(method="POST", path=("v1", "backup"), body=sendable({"name": name}))
        done: dict[str, Any] = await self._transport.ask(asked)
        return done

    async def check(self, *, repair: bool = False) -> dict[str, Any]:
        """Let the server look over all that it keeps; what is wrong, counted by part. It needs the scope admin."""
        asked = Request(method="POST", path=("v1", "check"), body={"repair": repair}, reads=not repair)
        report: dict[str, Any] = await self._transport.ask(asked)
        return report

    async def erase(self, owner: str, *, confirm: str) -> dict[str, Any]:
        """Erase everything of the owner for good, and return the receipt; `confirm` is the owner's name once more.

        The token needs the scope admin, and is of no owner. Done again, it goes on where it stopped.

        Raises:
            InvalidInput: `confirm` is another name; nothing was erased.
            ScopeError: the token may not.
        """
        body = {"owner": check_name("owner", owner), "confirm": confirm}
        receipt: dict[str, Any] = await self._transport.ask(Request(method="POST", path=("v1", "erase"), body=body))
        return receipt

    async def stats(self) -> dict[str, Any]:
        """What the storage of the tenant holds, in numbers; the token needs the scope admin."""
        numbers: dict[str, Any] = await self._transport.ask(Request(method="GET", path=("v1", "stats")))
        return numbers

    def _for(self, owner: str | None) -> str | None:
        return self.owner if owner is None else check_name("owner", owner)


def _piece(name: str | None, data: str) -> str | IntentResult:
    with readable():
        read = json.loads(data)
        if name == "piece":
            return str(read["text"])
        if name == "result":
            return result_of(read)
        raise error_of(read["status"], read)

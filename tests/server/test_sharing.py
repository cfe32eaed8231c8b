import asyncio
import contextlib
import errno
import socket
from collections.abc import AsyncIterator, Iterator

import pytest

from lamina.server.sharing import Accepting, ConnectionCounts, Place


class Kept(asyncio.Protocol):
    """A connection that is kept, as the server keeps its own."""

    def __init__(self, connections: set[asyncio.Protocol]) -> None:
        self._connections = connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.lost = asyncio.Event()
        self._connections.add(self)
        transport.write(b".")

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        self.lost.set()


@pytest.fixture
async def listener() -> AsyncIterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        yield listening


@pytest.fixture
def counts() -> Iterator[ConnectionCounts]:
    with contextlib.closing(ConnectionCounts.of(3)) as made:
        yield made


@contextlib.asynccontextmanager
async def accepting(
    listener: socket.socket, counts: ConnectionCounts, places: int = 2
) -> AsyncIterator[list[Accepting]]:
    """So many at the first places, as as many processes would: each by a descriptor of its own."""
    with contextlib.ExitStack() as stack:
        all_of_them: list[Accepting] = []
        for number in range(places):
            one: list[Accepting] = []
            own = stack.enter_context(listener.dup())
            made = Accepting(own, lambda one=one: Kept(one[0].connections), Place(counts, number))
            one.append(made)
            made.start()
            all_of_them.append(made)
        yield all_of_them
        for each in all_of_them:
            await each.stop()


async def connected(listener: socket.socket) -> asyncio.StreamWriter:
    """A connection that has begun at the other end too."""
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    await reader.readexactly(1)
    return writer


async def closed(writers: list[asyncio.StreamWriter], *ends: Accepting) -> None:
    """Close them at both ends."""
    for each in writers:
        each.close()
        await each.wait_closed()
    await asyncio.gather(*(connection.lost.wait() for end in ends for connection in end.connections))


@pytest.fixture
def endless_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina.server.sharing._PATIENCE", 60.0)


@pytest.mark.usefixtures("endless_patience")
async def test_connections_that_come_together_are_shared_evenly(
    listener: socket.socket, counts: ConnectionCounts
) -> None:
    async with accepting(listener, counts) as (one, other):
        writers = await asyncio.gather(*(connected(listener) for _ in range(16)))
        assert [len(one.connections), len(other.connections)] == [8, 8]
        assert counts.is_turn_of(0)  # that of both: they have told the same number
        assert counts.is_turn_of(1)
        await closed(writers, one, other)
        assert [len(one.connections), len(other.connections)] == [0, 0]


@pytest.mark.usefixtures("endless_patience")
async def test_whoever_has_lost_connections_takes_the_next(listener: socket.socket, counts: ConnectionCounts) -> None:
    async with accepting(listener, counts) as (one, other):
        writers = [await connected(listener) for _ in range(8)]
        for connection in list(one.connections):
            connection.transport.close()
            await connection.lost.wait()
        writers += [await connected(listener) for _ in range(4)]
        assert [len(one.connections), len(other.connections)] == [4, 4]
        await closed(writers, one, other)


async def test_one_that_does_not_accept_holds_nobody_up(listener: socket.socket, counts: ConnectionCounts) -> None:
    counts.note(1, 0)
    async with accepting(listener, counts, 1) as (one,):
        writers = await asyncio.gather(*(connected(listener) for _ in range(4)))
        assert len(one.connections) == 4
        await closed(writers, one)


def test_a_place_that_was_left_is_not_waited_for(counts: ConnectionCounts) -> None:
    counts.note(0, 5)
    assert counts.is_turn_of(0)
    counts.note(1, 4)
    assert not counts.is_turn_of(0)
    counts.leave(1)
    assert counts.is_turn_of(0)
    counts.note(0, 90)
    counts.note(2, 80)
    assert counts.is_turn_of(0)  # where there are many, nobody waits for one or two


async def test_without_descriptors_it_goes_on_accepting_later_with_a_socket_that_fails_once(
    listener: socket.socket, counts: ConnectionCounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamina.server.sharing._EXHAUSTED_SECONDS", 0.01)
    failures = [OSError(errno.EMFILE, "none left")]

    class Failing(socket.socket):
        def dup(self) -> socket.socket:
            return Failing(fileno=socket.dup(self.fileno()))

        def accept(self) -> tuple[socket.socket, object]:
            if failures:
                raise failures.pop()
            return super().accept()

    with Failing(fileno=socket.dup(listener.fileno())) as failing:
        async with accepting(failing, counts, 1) as (one,):
            writer = await connected(listener)
            assert len(one.connections) == 1
            assert not failures
            await closed([writer], one)

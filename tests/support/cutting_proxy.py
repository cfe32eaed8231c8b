"""Stands between a client and a server of this machine, and cuts the connection where it is told."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_ANSWERED_WITHIN = 5.0


class CuttingProxy:
    """Passes bytes on, both ways.

    `before` and `after` are asked with what the client sends, as it comes: before it is passed on, and once the
    server has answered it. Where one says so, both sides are closed at once, and no answer reaches the client.

    Args:
        target: The server's port on the loopback address, or its socket in the file system.
        port: Where to listen; 0 is any that is free.
    """

    def __init__(self, target: int | Path, port: int = 0) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", port))
        self.port = self._listening.getsockname()[1]
        self.before: Callable[[bytes], bool] = _never
        self.after: Callable[[bytes], bool] = _never
        self.cuts = 0
        self._is_closing = False
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def cut(self) -> None:
        """Cut all connections now."""
        for each in self._open:
            _end(each)

    def close(self) -> None:
        self._is_closing = True
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port)).close()  # which ends the wait for one
        self._threads[0].join()
        self._listening.close()
        self.cut()
        for each in self._threads:
            each.join(10)

    def read(self, source: socket.socket) -> bytes:
        """What is looked at, and passed on, as one; empty at the end."""
        return source.recv(65536)

    def is_cut_at(self, data: bytes, client: socket.socket, server: socket.socket) -> bool:
        """Pass on what the client sent; whether this is where the connection is cut."""
        if self.before(data):
            self.cuts += 1
            return True
        server.sendall(data)
        if self.after(data):
            await_answer(client, server)
            self.cuts += 1
            return True
        return False

    def _accept(self) -> None:
        while True:
            client, _ = self._listening.accept()
            if self._is_closing:
                client.close()
                return
            try:
                server = _connected(self._target)
            except OSError:
                client.close()
                continue
            self._open += [client, server]
            self._threads.append(threading.Thread(target=self._pass_on, args=(client, server), daemon=True))
            self._threads[-1].start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while True:
                for source in select.select([client, server], [], [])[0]:
                    data = self.read(source)
                    if not data or (source is client and self.is_cut_at(data, client, server)):
                        return
                    if source is server:
                        client.sendall(data)
        except (OSError, ValueError):  # cut from outside
            return
        finally:
            _end(client)
            _end(server)


def _connected(target: int | Path) -> socket.socket:
    if isinstance(target, int):
        return socket.create_connection(("127.0.0.1", target))
    server = socket.socket(socket.AF_UNIX)
    try:
        server.connect(str(target))
    except OSError:
        server.close()
        raise
    return server


def await_answer(client: socket.socket, server: socket.socket) -> None:
    """Until the server answers, pass on what else the client sends: the answer may wait for more of the same."""
    while server not in (ready := select.select([client, server], [], [], _ANSWERED_WITHIN)[0]):
        if not ready or not (rest := client.recv(65536)):
            return
        server.sendall(rest)


def _never(_: bytes) -> bool:
    return False


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()

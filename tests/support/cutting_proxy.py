"""Stands between a client and a server on the loopback address, and cuts the connection where it is told."""

import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress


class CuttingProxy:
    """Passes bytes on, both ways.

    `before` and `after` are asked with what the client sends, as it comes: before it is passed on, and once the
    server has answered it. Where one says so, both sides are closed at once, and no answer reaches the client.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.before: Callable[[bytes], bool] = _never
        self.after: Callable[[bytes], bool] = _never
        self.cuts = 0
        self._is_closing = False
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._is_closing = True
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port)).close()  # which ends the wait for one
        self._thread.join()
        self._listening.close()
        for each in self._open:
            _end(each)

    def _accept(self) -> None:
        while True:
            client, _ = self._listening.accept()
            if self._is_closing:
                client.close()
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                client.close()
                continue
            self._open += [client, server]
            threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while True:
                for source in select.select([client, server], [], [])[0]:
                    data = source.recv(65536)
                    if not data or (source is client and self._forward(data, client, server)):
                        return
                    if source is server:
                        client.sendall(data)
        except (OSError, ValueError):  # cut from outside
            return
        finally:
            _end(client)
            _end(server)

    def _forward(self, data: bytes, client: socket.socket, server: socket.socket) -> bool:
        """Whether this is where the connection is cut."""
        if self.before(data):
            self.cuts += 1
            return True
        server.sendall(data)
        if self.after(data):
            while server not in (ready := select.select([client, server], [], [])[0]):
                server.sendall(ready[0].recv(65536))  # the rest of the request
            self.cuts += 1
            return True
        return False


def _never(_: bytes) -> bool:
    return False


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()

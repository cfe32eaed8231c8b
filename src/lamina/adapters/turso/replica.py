"""A replica here of a database elsewhere: writes go there, reads are answered here."""

from __future__ import annotations

import json
import logging
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from lamina.adapters._shared.patience import attempts
from lamina.adapters._shared.where_sql import Sql
from lamina.adapters.turso.failures import Failed
from lamina.adapters.turso.local import Local
from lamina.adapters.turso.remote import Remote
from lamina.adapters.turso.runner import Row
from lamina.adapters.turso.tables import Tables

__all__ = ["Replica"]

log = logging.getLogger(__name__)

FIRST: Final = 20
"""How many times as long as the others the first synchronisation may take: it brings the whole database."""
AGAIN_AFTER: Final = 5.0
"""Seconds, at most, until a synchronisation that failed is tried again by those who only read."""
WAIT: Final = 5.0
"""Seconds for which a read waits for what was written through the replica and has not come back yet."""

DOWN: Final = "REPLICA_DOWN"
"""The database cannot be reached: what is here may be read on."""


class Replica:
    """A `Runner` of which a file on this machine answers the reads.

    What was written through it is waited for before anything is read, or the read fails. What others wrote is
    there after `sync_every` seconds at most, or later if the database cannot be reached.
    """

    def __init__(
        self, remote: Remote, path: Path, token: str | None, tables: Tables, *, sync_every: float, timeout: float
    ) -> None:
        self.place = f"{remote.place} with the replica {path}"
        self._remote = remote
        self._path = path
        self._local = Local(path, busy_timeout=timeout, writable=False)
        self._follower = Follower(path, remote.url, token, timeout)
        self._tables = tables
        self._every = sync_every
        self._turn = threading.Lock()
        self._due = 0.0
        self._wanted = 0
        self._seen = 0
        self._asks_there = threading.local()

    def open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._remote.open()
        self._local.open()
        with self._turn:
            try:
                self._synchronise()
            except Failed as error:
                if error.code != DOWN or not self._path.exists():
                    raise
                log.warning("The replica could not be brought up to date; it is read as it is.")

    def close(self) -> None:
        self._follower.close()
        self._local.close()
        self._remote.close()

    @contextmanager
    def fresh(self) -> Iterator[None]:
        self._asks_there.now = True
        try:
            yield
        finally:
            self._asks_there.now = False

    def read(self, sql: Sql) -> list[Row]:
        if getattr(self._asks_there, "now", False):
            return self._remote.read(sql)
        with self._turn:
            self._catch_up()
        return self._local.read(sql)

    def write(self, changes: Sequence[Sql], guard: Sql | None = None) -> list[list[Row]]:
        count = self._tables.sql("UPDATE {counters} SET value = value + 1 WHERE name = 'writes' RETURNING value")
        self._due = 0.0  # whatever comes of it, and if it is stale, others wrote
        *found, [(number,)] = self._remote.write([*changes, count], guard)
        with self._turn:
            self._wanted = max(self._wanted, number)
            with suppress(Failed):  # it is written; who reads next waits for it, or is told
                self._synchronise()
        return found

    def _catch_up(self) -> None:
        """Have all that was written through here, and what others wrote if it is time.

        Raises:
            Failed: what was written through here is not to be had, or the replica can never be brought up to date.
        """
        if self._wanted > self._seen:
            self._wait_for_own()
        if time.monotonic() >= self._due:
            try:
                self._synchronise()
            except Failed as error:
                if error.code != DOWN:
                    raise
                self._due = time.monotonic() + min(self._every, AGAIN_AFTER)
                log.warning("The replica could not be brought up to date; it is read as it is.")

    def _wait_for_own(self) -> None:
        missing = behind = Failed("", "REPLICA_BEHIND")
        for _ in attempts(WAIT, first=0.04, longest=1.0):
            try:
                self._synchronise()
                if self._wanted <= self._seen:
                    return
                missing = behind
            except Failed as error:  # servers refuse for a moment while they compact their log
                if error.code != DOWN:
                    raise
                missing = error
        raise missing

    def _synchronise(self) -> None:
        self._follower.synchronise()
        self._due = time.monotonic() + self._every
        with suppress(Failed):  # the tables are not there before they are made
            query = "SELECT value FROM {counters} WHERE name = 'writes'"
            self._seen = max([self._seen, *(value for (value,) in self._local.read(self._tables.sql(query)))])


class Follower:
    """The process that keeps the file in step, started when it is needed."""

    def __init__(self, path: Path, url: str, token: str | None, timeout: float) -> None:
        self._asked = {"path": str(path.absolute()), "url": url, "token": token or ""}
        self._timeout = timeout
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._patience = FIRST * timeout

    def synchronise(self) -> None:
        """Bring the file up to date. One caller at a time.

        Raises:
            Failed: it is not; the code says why.
        """
        process = self._started()
        assert process.stdin is not None  # noqa: S101 - it was asked for
        try:
            process.stdin.write(json.dumps(self._asked) + "\n")
            process.stdin.flush()
            line = self._answers.get(timeout=self._patience)
        except (OSError, queue.Empty):
            self.close()
            raise Failed("no answer", DOWN) from None
        if not line:
            self.close()
            raise Failed("the process ended", "REPLICA_ENDED")
        said = json.loads(line)
        if said is not None:
            raise Failed(said, _code(said))
        self._patience = self._timeout

    def close(self) -> None:
        """End the process. Idempotent."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def _started(self) -> subprocess.Popen[str]:
        if self._process is not None:
            return self._process
        script = Path(__file__).with_name("follower.py")
        self._process = subprocess.Popen(  # noqa: S603 - this very Python, and a file of this package
            [sys.executable, "-P", str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        )
        assert self._process.stdout is not None  # noqa: S101 - it was asked for
        self._answers = queue.SimpleQueue()
        threading.Thread(target=_pass_on, args=(self._process.stdout, self._answers), daemon=True).start()
        return self._process


def _pass_on(lines: IO[str], answers: queue.SimpleQueue[str]) -> None:
    """A pipe cannot be waited for with a time-out on every system; a queue can."""
    with suppress(ValueError, OSError):  # it was closed
        for line in lines:
            answers.put(line)
    answers.put("")


_CODES: Final = (
    (("unauthor", "401", "authent"), "REPLICA_AUTH"),
    (("404", "unimplemented"), "REPLICA_PROTOCOL"),
    (("not a database", "malformed", "local state", "wal_index", "verify metadata"), "REPLICA_BROKEN"),
)
"""The library has no codes, only words."""


def _code(said: str) -> str:
    lower = said.lower()
    return next((code for words, code in _CODES if any(word in lower for word in words)), DOWN)

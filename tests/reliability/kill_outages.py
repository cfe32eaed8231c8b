"""What befalls that which a program writes to, and is over after a while: the program goes on, and is killed later."""

from __future__ import annotations

import asyncio
import random
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from kill_places import Place

if sys.platform == "linux":
    import resource

PIECE = 4096


class Outage(ABC):
    """It begins and ends; in between, what writes is refused."""

    name: str
    can_be_read: bool
    """Whether what is there can be read meanwhile."""

    @abstractmethod
    async def begin(self, place: Place, victim: int, chance: random.Random) -> None:
        """Let it befall the place, or the process that writes to it."""

    @abstractmethod
    async def end(self, place: Place, victim: int) -> None:
        """Let it be over."""


class ServerKilled(Outage):
    """All processes of a PostgreSQL are killed, and it is started again, which recovers what it had logged."""

    name = "its server is killed"
    can_be_read = False

    def __init__(self, server: Any) -> None:
        self._server = server

    async def begin(self, place: Place, victim: int, chance: random.Random) -> None:
        await asyncio.to_thread(self._server.kill)

    async def end(self, place: Place, victim: int) -> None:
        await asyncio.to_thread(self._server.start)


class FilesMayNotGrow(Outage):
    """The kernel refuses the process whatever goes beyond so many bytes of a file (`RLIMIT_FSIZE`)."""

    name = "its files may not grow"
    can_be_read = True

    async def begin(self, place: Place, victim: int, chance: random.Random) -> None:
        logged = (place.folder / "lamina.db-wal").stat().st_size
        _, most = resource.prlimit(victim, resource.RLIMIT_FSIZE)
        resource.prlimit(victim, resource.RLIMIT_FSIZE, (chance.randint(logged // 2, logged), most))

    async def end(self, place: Place, victim: int) -> None:
        with suppress(ProcessLookupError):  # it has ended by itself
            _, most = resource.prlimit(victim, resource.RLIMIT_FSIZE)
            resource.prlimit(victim, resource.RLIMIT_FSIZE, (most, most))


class DiskFull(Outage):
    """Something else fills the file system, which is a small one of its own."""

    name = "its disk is full"
    can_be_read = True

    async def begin(self, place: Place, victim: int, chance: random.Random) -> None:
        with suppress(OSError), (place.folder / "ballast").open("wb", buffering=0) as ballast:
            while ballast.write(bytes(PIECE)):
                pass

    async def end(self, place: Place, victim: int) -> None:
        (place.folder / "ballast").unlink()


@contextmanager
def small_disk(folder: Path, size: int = 2**24) -> Iterator[None]:
    """A file system of so many bytes, in memory, mounted at the folder, as root may.

    Raises:
        PermissionError: it may not be mounted here.
    """
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if mount is None or umount is None:
        raise PermissionError("there is no mount")
    command = [mount, "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PermissionError(done.stderr.strip())
    try:
        yield
    finally:
        subprocess.run([umount, "--lazy", folder], check=True)

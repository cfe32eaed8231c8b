"""Google's own emulator of Firestore, started where it is installed; no package registry holds it."""

import secrets
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import services
from java import find_java

JAR: Final = "platform/cloud-firestore-emulator/cloud-firestore-emulator.jar"
MAIN: Final = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"


class FirestoreServer:
    """An emulator on a port of its own, which keeps what it holds in memory only."""

    def __init__(self) -> None:
        gcloud = shutil.which("gcloud")
        if gcloud is None:
            raise services.NoMeans("there is no gcloud, with which Google's SDK brings its emulators")
        self._jar = Path(gcloud).resolve().parents[1] / JAR
        if not self._jar.exists():
            raise services.NoMeans("the component cloud-firestore-emulator of Google's SDK is not installed")
        self._java = find_java()
        self._process = services.Process("firestore")
        self.port = services.free_port()
        self.url = f"127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        options = ["-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", self._jar, MAIN]
        command = [self._java, *options, "start", "--host=127.0.0.1", f"--port={self.port}"]
        self._process.run(command, services.listens(self.port))

    def kill(self) -> None:
        self._process.kill()

    def stop(self) -> None:
        self._process.stop()

    def drop(self, project: str) -> None:
        """Forget all documents of a project."""
        url = f"http://{self.url}/emulator/v1/projects/{project}/databases/(default)/documents"
        urllib.request.urlopen(urllib.request.Request(url, method="DELETE"), timeout=30).close()


@pytest.fixture(scope="session")
def firestore() -> Iterator[FirestoreServer]:
    """One emulator for the whole run; each test has a project of its own."""
    yield from services.started("firestore")


@pytest.fixture
def firestore_project(firestore: FirestoreServer) -> Iterator[str]:
    """The id of an empty project that no other test uses; it is dropped."""
    name = f"test-{secrets.token_hex(6)}"
    yield name
    firestore.drop(name)

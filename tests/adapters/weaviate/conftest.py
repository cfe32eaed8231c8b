import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from fake_weaviate import WeaviateFake
from opening import opening

from lamina.adapters.weaviate import WeaviateAdapter

Opener = Callable[..., Awaitable[WeaviateAdapter]]


@pytest.fixture
def service() -> Iterator[WeaviateFake]:
    """A fake of the test's own."""
    fake = WeaviateFake()
    yield fake
    fake.stop()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client repeats what failed as often as ever, but soon."""

    class Time:
        @staticmethod
        def sleep(seconds: float) -> None:
            time.sleep(min(0.25, seconds))

    monkeypatch.setattr("weaviate.retry.time", Time)


@pytest.fixture
def options(service: WeaviateFake) -> dict[str, Any]:
    return {"url": service.url, "grpc_port": service.grpc_port, "timeout": 5}


@pytest.fixture
async def opened(options: dict[str, Any]) -> AsyncIterator[Opener]:
    """Opens adapters on the fake, with its options unless told otherwise, and closes them at the end."""
    async with opening(WeaviateAdapter, **options) as open_one:
        yield open_one


@pytest.fixture
async def adapter(opened: Opener) -> WeaviateAdapter:
    return await opened()

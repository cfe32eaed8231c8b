from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from fake_pinecone import API_KEY, PineconeFake
from opening import opening

from lamina.adapters.pinecone import PineconeAdapter

Opener = Callable[..., Awaitable[PineconeAdapter]]


@pytest.fixture
def service() -> Iterator[PineconeFake]:
    """A fake of the test's own, with an index of four dimensions."""
    fake = PineconeFake()
    fake.create("memories", 4)
    yield fake
    fake.stop()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client repeats what failed as often as ever, but at once."""
    monkeypatch.setattr("pinecone._internal.http_client._retry_sleep", lambda seconds: None)
    from pinecone._internal.http_client import get_budget_registry

    get_budget_registry()._reset()  # of failures, which outlives a client


@pytest.fixture
def options(service: PineconeFake) -> dict[str, Any]:
    return {"index_name": "memories", "api_key": API_KEY, "url": service.url, "timeout": 5}


@pytest.fixture
async def opened(options: dict[str, Any]) -> AsyncIterator[Opener]:
    """Opens adapters on the fake, with its options unless told otherwise, and closes them at the end."""
    async with opening(PineconeAdapter, **options) as open_one:
        yield open_one


@pytest.fixture
async def adapter(opened: Opener) -> PineconeAdapter:
    return await opened()

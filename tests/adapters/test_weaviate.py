from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import certifi
import pytest
from fake_weaviate import WeaviateFake

from lamina.adapters.weaviate import WeaviateAdapter
from lamina.testing import MemoryAdapterContract

END = "-----END CERTIFICATE-----\n"


@pytest.fixture(scope="module", autouse=True)
def one_authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The client reads all authorities' certificates each time, though nothing is encrypted here; so let it be one."""
    first, _, _ = Path(certifi.where()).read_text(encoding="utf-8").partition(END)
    path = tmp_path_factory.mktemp("authorities") / "one.pem"
    path.write_text(first + END, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certifi, "where", lambda: str(path))
        yield


class TestWeaviateAdapterAgainstAWireFake(MemoryAdapterContract):
    service = "weaviate"

    @pytest.fixture
    async def adapter(self, weaviate_service: WeaviateFake) -> AsyncIterator[WeaviateAdapter]:
        adapter = WeaviateAdapter(weaviate_service.url, grpc_port=weaviate_service.grpc_port, table="contract")
        await adapter.initialize()
        yield adapter
        await adapter.close()
        weaviate_service.empty()

"""The three requests that clients of packs are shown, unchanged but for the base URL, against a server that listens.

They use `httpx`, as they are written, and so a client that blocks: it runs in a thread of its own.
"""

from __future__ import annotations

import asyncio
import textwrap

import pytest
from served import TOKEN, listening

from lamina.kernel import Kernel, ModelRouter
from lamina.server import create_app
from lamina.testing import HashingEmbedder

pytest.importorskip("httpx")

BASE = "https://api.example.com"

LIST_PACKS = """
    import httpx

    response = httpx.get(
        "https://api.example.com/utils/context-packs",
        headers={"Authorization": f"Bearer {token}"},
        params={"type": "domain"}
    )
    packs = response.json()["data"]
"""
CREATE_A_PACK = """
    response = httpx.post(
        "https://api.example.com/utils/context-packs",
        headers={"Authorization": f"Bearer {token}"},
        json={
            "name": "semiconductor_domain",
            "type": "domain",
            "description": "Knowledge about semiconductor fabrication processes and terminology",
            "tags": ["semiconductor", "fabrication", "yield"]
        }
    )
"""
QUERY_A_PACK = """
    response = httpx.get(
        f"https://api.example.com/utils/context-packs/{pack_name}/memories",
        headers={"Authorization": f"Bearer {token}"},
        params={
            "memory_type": "fact",
            "limit": 5
        }
    )
    memories = response.json()["data"]
"""


def run(snippet, names, url):
    exec(textwrap.dedent(snippet).replace(BASE, url), names)  # noqa: S102 - that is what running a snippet means


@pytest.fixture
async def kernel(tmp_path):
    async with Kernel(data_dir=tmp_path, model_router=ModelRouter(embed=HashingEmbedder())) as started:
        yield started


async def test_the_three_requests_run_unchanged_against_a_live_server_with_a_token(kernel):
    async with listening(create_app(kernel, auth={TOKEN})) as (host, port, _):
        url, names = f"http://{host}:{port}", {"token": TOKEN, "pack_name": "semiconductor_domain"}

        await asyncio.to_thread(run, LIST_PACKS, names, url)
        assert (names["response"].status_code, names["packs"]) == (200, [])

        await asyncio.to_thread(run, CREATE_A_PACK, names, url)
        assert names["response"].status_code == 201
        made = names["response"].json()["data"]
        assert (made["name"], made["type"]) == ("semiconductor_domain", "domain")
        assert made["tags"] == ["semiconductor", "fabrication", "yield"]

        await asyncio.to_thread(run, LIST_PACKS, names, url)
        assert [each["id"] for each in names["packs"]] == [made["id"]]

        for number in range(7):
            await kernel.packs.add("semiconductor_domain", f"Fact number {number} about wafers")
        await kernel.packs.add("semiconductor_domain", "Never open the airlock by hand", "policy")
        await asyncio.to_thread(run, QUERY_A_PACK, names, url)
        assert names["response"].status_code == 200
        memories = names["memories"]
        assert [each["content"] for each in memories] == [f"Fact number {number} about wafers" for number in range(5)]
        assert {each["memory_type"] for each in memories} == {"fact"}
        assert {each["metadata"]["access_count"] for each in memories} == {1}


async def test_without_the_token_each_of_them_is_refused(kernel):
    async with listening(create_app(kernel, auth={TOKEN})) as (host, port, _):
        url, names = f"http://{host}:{port}", {"token": "another", "pack_name": "semiconductor_domain"}
        for snippet in (f"{LIST_PACKS}", CREATE_A_PACK, QUERY_A_PACK):
            with pytest.raises(KeyError, match="data"):
                await asyncio.to_thread(run, f"    import httpx\n{snippet}\n    response.json()['data']", names, url)
            assert names["response"].status_code == 401
            assert names["response"].headers["WWW-Authenticate"].startswith("Bearer")
    assert await kernel.packs.list() == []

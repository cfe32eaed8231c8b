"""Packs over HTTP: a token sees the shared ones and its owner's own, changes its own, and of others nothing."""

from __future__ import annotations

import asyncio

import pytest
from served import OWNERS, client_of

from lamina.kernel import ModelRouter, TenantKernels
from lamina.server import Principal, create_app
from lamina.testing import HashingEmbedder

PACKS = "/utils/context-packs"
TENANTS = ["acme", "acme%"]


async def authenticate(token):
    tenant, _, owner = bytes.fromhex(token).decode().partition("\n")
    return Principal(tenant=tenant, owner=owner or None, id=token)


def token_of(tenant, owner=""):
    return f"{tenant}\n{owner}".encode().hex()


@pytest.fixture
async def app(tmp_path):
    router = ModelRouter(embed=HashingEmbedder())
    async with TenantKernels(data_dir=tmp_path, model_router=router) as kernels:
        yield create_app(kernels, auth=authenticate)


async def fill(http, name, says):
    pack = (await http.post(PACKS, json={"name": name, "type": "project", "description": "the secret"})).json()["data"]
    memory = await http.post(f"{PACKS}/{name}/memories", json={"content": f"the secret of {says}", "name": "secret"})
    return pack["id"], memory.json()["data"]["id"]


@pytest.fixture
async def things(app):
    """The ids of a pack and its memory: of each owner in each tenant, and the shared ones, under owner ''."""
    made = {}
    for tenant in TENANTS:
        async with client_of(app, token=token_of(tenant)) as http:
            made[tenant, ""] = await fill(http, "shared", "all")
        for owner in OWNERS:
            async with client_of(app, token=token_of(tenant, owner)) as http:
                made[tenant, owner] = await fill(http, "notes", owner)
    return made


@pytest.mark.parametrize("tenant", TENANTS)
async def test_every_reading_route_shows_the_own_and_the_shared_and_no_foreign_row(app, things, tenant):
    for owner in OWNERS:
        await reads_only_its_own(app, things, tenant, owner)


async def reads_only_its_own(app, things, tenant, owner):
    packs = {things[tenant, owner][0], things[tenant, ""][0]}
    memory, shared = things[tenant, owner][1], things[tenant, ""][1]
    async with client_of(app, token=token_of(tenant, owner)) as http:
        listed = (await http.get(PACKS, params={"page_size": 100})).json()
        assert {each["id"] for each in listed["data"]} == packs
        assert listed["pagination"]["total_items"] == 2
        found = (await http.post(f"{PACKS}/discover", json={"query": "the secret", "limit": 100})).json()["data"]
        assert {each["id"] for each in found} == packs
        assert (await http.get(f"{PACKS}/notes")).json()["data"]["metadata"]["memory_count"] == 1
        assert [each["id"] for each in (await http.get(f"{PACKS}/notes/fading")).json()["data"]] == [memory]
        for params in ({}, {"query": "the secret"}, {"name": "secret"}):
            page = (await http.get(f"{PACKS}/notes/memories", params=params)).json()
            assert [each["id"] for each in page["data"]] == [memory]
            assert page["data"][0]["content"] == f"the secret of {owner}"
        body = {"pack_ids": sorted(packs), "query": "the secret", "limit": 100}
        hits = (await http.post("/utils/search/retrieve", json=body)).json()["data"]
        assert {each["id"] for each in hits} == {memory, shared}
        assert (await http.get(f"/utils/memories/{memory}")).status_code == 200
        assert (await http.get(f"/utils/memories/{shared}")).status_code == 200


async def test_what_is_shared_is_read_by_all_and_changed_by_no_token_of_an_owner(app, things):
    pack, shared = things["acme", ""]
    own = things["acme", "a"][1]
    async with client_of(app, token=token_of("acme", "a")) as http:
        for method, path, body in (
            ("PATCH", f"{PACKS}/shared", {"description": "mine"}),
            ("DELETE", f"{PACKS}/shared", None),
            ("POST", f"{PACKS}/shared/permanent-delete", None),
            ("POST", f"{PACKS}/shared/memories", {"content": "mine"}),
            ("POST", f"{PACKS}/shared/memories/batch", {"memories": [{"content": "mine"}]}),
            ("PATCH", f"/utils/memories/{shared}", {"content": "mine"}),
            ("DELETE", f"/utils/memories/{shared}", None),
            ("POST", f"/utils/memories/{shared}/pin", None),
            ("POST", f"/utils/memories/{shared}/unpin", None),
            ("POST", f"/utils/memories/{shared}/archive", None),
            ("POST", f"/utils/memories/{shared}/restore", None),
            ("POST", f"/utils/memories/{shared}/permanent-delete", None),
            ("POST", f"/utils/memories/{shared}/supersede", {"by": own}),
            ("POST", f"/utils/memories/{own}/supersede", {"by": shared}),
        ):
            answer = await http.request(method, path, json=body)
            assert answer.status_code == 403, (method, path, answer.text)
            assert answer.json()["error"]["code"] == "forbidden"
        theirs = {"type": "supersedes", "target_id": shared}
        answer = await http.post(f"{PACKS}/notes/memories", json={"content": "mine", "relationships": [theirs]})
        assert answer.status_code == 422
        for params in ({"owner": "A"}, {"owner": "ａ"}, {"owner": "default"}):
            assert (await http.get(PACKS, params=params)).status_code == 403
        assert (await http.post(PACKS, json={"name": "p", "type": "domain", "owner": "A"})).status_code == 403
        own_pack = (await http.post(PACKS, json={"name": "mine", "type": "user"})).json()["data"]
        assert own_pack["owner"] == "a"
    async with client_of(app, token=token_of("acme")) as http:
        told = (await http.get(f"{PACKS}/shared")).json()["data"]
        assert (told["id"], told["revision"], told["metadata"]["memory_count"]) == (pack, 1, 1)


async def test_a_token_of_no_owner_acts_for_the_owner_that_it_names(app, things):
    pack, memory = things["acme", "a:1"]
    async with client_of(app, token=token_of("acme")) as http:
        assert (await http.get(f"{PACKS}/notes")).status_code == 404
        assert (await http.get(f"/utils/memories/{memory}")).status_code == 404
        for_them = {"owner": "a:1"}
        assert (await http.get(f"{PACKS}/notes", params=for_them)).json()["data"]["id"] == pack
        changed = await http.patch(f"/utils/memories/{memory}", params=for_them, json={"content": "better"})
        assert changed.json()["data"]["content"] == "better"


async def test_deleting_the_own_pack_twice_at_once_never_reaches_the_shared_one_of_its_name(app, things):
    async with client_of(app, token=token_of("acme", "a")) as http:
        for _ in range(5):
            await http.post(PACKS, json={"name": "shared", "type": "project"})
            answers = await asyncio.gather(*(http.delete(f"{PACKS}/shared") for _ in range(4)))
            assert sorted(each.status_code for each in answers) == [204, 404, 404, 404]
        assert (await http.get(f"{PACKS}/shared")).json()["data"]["id"] == things["acme", ""][0]

"""Two tenants with owners of hostile names over every route: to each what is its own or shared, and no foreign row."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace

import pytest
import pytest_asyncio
from isolation_routes import CLAIMS, READS, UNASKED, WRITES
from isolation_world import ALL, MISSING, OWNERS, TENANTS, world_of

from lamina.server import mcp_mount
from lamina.server.caller import Caller
from lamina.server.route_listing import routes_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

NAMING_THINGS = [row for row in (*READS, *WRITES) if row.has_names]
OF_AN_OWNER = [row for row in READS if row.names_in != "nowhere"]
WHOLE_TENANT = {
    "GET /v1/stats": {},
    "POST /v1/maintenance": {"json": {}},
    "POST /v1/backup": {"json": {}},
    "POST /v1/check": {"json": {}},
    "POST /v1/erase": {"json": {"owner": "a", "confirm": "a"}},
    "POST /v1/import": {"content": b"", "headers": {"Content-Type": "application/x-ndjson"}},
}
_OF_THE_MOMENT = re.compile(r'"(intent_id|computed_at)":"[^"]*"')


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["sqlite", "postgres"])
async def world(request, tmp_path_factory):
    where, drop, owners = {"data_dir": tmp_path_factory.mktemp("isolation")}, None, OWNERS
    if request.param == "postgres":
        server, name = request.getfixturevalue("postgres"), "test_isolation_sweep"
        where, drop = {"memory": {"url": server.make_database(name)}}, lambda: server.drop_database(name)
        owners = ["A", "a", "a%", "default"]
    filled, asked = asyncio.get_running_loop().create_future(), asyncio.Event()

    async def keep():  # in one task, as a server does it; a fixture is ended in another than it was begun in
        async with world_of(owners, **where) as made:
            filled.set_result(made)
            await asked.wait()

    keeping = asyncio.create_task(keep())
    await asyncio.wait([filled, keeping], return_when=asyncio.FIRST_COMPLETED)
    made = filled.result() if filled.done() else keeping.result()
    made.askers = made.everybody if drop is None else [(TENANTS[0], "a%"), (TENANTS[1], "A")]
    yield made
    asked.set()
    await keeping
    if drop is not None:
        drop()


async def ask(world, asker, row, names, *, owner=None, **query):
    tenant, own = asker
    mine = world.names.get((tenant, own if own is not None else owner), {})
    method, path, options = row.asked(names, mine, owner, **query)
    return await world.clients[asker].request(method, path, **options)


def expected(world, row, tenant, owners):
    """The things of these owners, and the shared ones, that the row is to tell of."""
    wanted = [(owner, kind) for owner in owners for kind in row.own] + [(ALL, kind) for kind in row.shared]
    return {(tenant, owner, kind) for owner, kind in wanted if kind in world.names[tenant, owner]}


def wrong(world, row, answer, tenant, owner):
    """What is wrong with the answer to a question about the owner's own things."""
    told, wanted = world.told_by(answer), expected(world, row, tenant, [owner])
    if answer.status_code != 200 or told != wanted or (row.says and not row.says(answer.json(), owner)):
        return [row.route, answer.status_code, f"{told - wanted} too much, {wanted - told} lacking", answer.text[:300]]
    owners = {json.loads(each) for each in re.findall(r'"owner": ?(null|"(?:[^"\\]|\\.)*")', answer.text)}
    return [row.route, f"of other owners: {owners}"] if owners - {owner, None, "default"} else None


async def differs(world, asker, row, other):
    """What tells another's thing from one that there is not."""
    names = world.names[other]
    answer = await ask(world, asker, row, names)
    text = _OF_THE_MOMENT.sub("", answer.text)
    for name in names.values():
        text = text.replace(name, MISSING)
    missing = await missing_of(world, asker, row)
    if (answer.status_code, text) != missing:
        return [row.route, f"{asker} asks for {other}", answer.status_code, text[:300], missing]
    return None


async def missing_of(world, asker, row):
    """The status and the text of the answer about what is not there; asked once where it is one answer for all."""
    place = (asker if "{my_" in repr(row) or row.shared else asker[0], id(row))
    if place not in world.missing:
        answer = await ask(world, asker, row, dict.fromkeys(world.names[world.everybody[0]], MISSING))
        world.missing[place] = (answer.status_code, _OF_THE_MOMENT.sub("", answer.text))
    return world.missing[place]


def questions(world, rows):
    """Each row for each owner; those that could tell of nothing but a thing of the asker's own for every fifth."""
    for number, row in enumerate(rows):
        for place, (tenant, owner) in enumerate(world.askers):
            could_tell = (row.own and not row.has_names) or row.says
            if could_tell or len(world.askers) < 5 or (number + place) % 5 == 0:
                yield number, row, tenant, owner


def next_to(world, owner):
    return world.owners[world.owners.index(owner) - 1]


@pytest.mark.parametrize("world", ["sqlite"], indirect=True)
async def test_every_route_is_asked_or_has_a_reason_not_to_be(world):
    here = {f"{method} {each.path}" for each in routes_of(world.app.routes) for method in each.methods}
    claimed = {row.route for _, row in CLAIMS}
    asked = claimed | {row.route for row in (*READS, *WRITES)}
    assert asked - here == {"GET /openapi.json", "POST /mcp"}
    assert here - asked == set(UNASKED)
    assert {each for each in here if each.startswith("GET ")} - {row.route for row in READS} == {"GET /v1/stats"}
    assert {row.route for row in WRITES if not row.has_names} == set()
    assert {each for each in here - set(UNASKED) if "{" in each} <= {row.route for row in NAMING_THINGS} | claimed


async def test_what_is_anothers_is_answered_as_what_is_not_there(world):
    found = []
    for turn, row in enumerate(NAMING_THINGS):
        for place, asker in enumerate(world.askers):
            others = [each for each in world.everybody if each != asker]
            found.append(await differs(world, asker, row, others[(turn + place) % len(others)]))
        if "{my_" not in repr(row):
            for tenant, foreign in (TENANTS, TENANTS[::-1]):
                other = foreign, world.owners[turn % len(world.owners)]
                found.append(await differs(world, (tenant, None), row, other))
        if row.at and "{my_" not in repr(row):
            assert (await missing_of(world, world.askers[0], row))[0] == 404, row.route
    assert [each for each in found if each] == []


async def test_an_id_that_another_owner_has_taken_is_refused_and_nothing_is_told_of_it(world):
    for turn, (status, row) in enumerate(CLAIMS):
        for place, (tenant, owner) in enumerate(world.askers[:: 1 + len(world.askers) // 4]):
            others = [each for each in world.owners if each != owner]
            names = world.names[tenant, others[(turn + place) % len(others)]]
            answer = await ask(world, (tenant, owner), row, names)
            assert answer.status_code == status, (row, answer.text)
            assert {kind for _, _, kind in world.told_by(answer)} <= {"thread", "session", "memory"}  # the id it gave


async def test_what_is_shared_is_deleted_by_no_token_of_an_owner(world):
    for tenant, owner in world.askers[:2]:
        document = world.names[tenant, ALL]["document"]
        assert (await world.clients[tenant, owner].delete(f"/v1/documents/{document}")).status_code == 403


async def test_a_token_of_an_owner_is_told_of_the_own_and_the_shared_alone(world):
    """The same key in the requests of all of them brings nobody the answer to another."""
    found = []
    for number, row, tenant, owner in questions(world, READS):
        world.clients[tenant, owner].headers["Idempotency-Key"] = f"row-{number}"
        answer = await ask(world, (tenant, owner), row, world.names[tenant, owner])
        found.append(wrong(world, row, answer, tenant, owner))
    for asker in world.askers:
        del world.clients[asker].headers["Idempotency-Key"]
    assert [each for each in found if each] == []


@pytest.mark.parametrize("world", ["sqlite"], indirect=True)
async def test_a_token_of_no_owner_that_names_one_is_told_of_that_ones_and_the_shared_alone(world):
    found = []
    for _, row, tenant, owner in questions(world, OF_AN_OWNER):
        answer = await ask(world, (tenant, None), row, world.names[tenant, owner], owner=owner)
        found.append(wrong(world, row, answer, tenant, owner))
    assert [each for each in found if each] == []


async def test_a_token_of_no_owner_that_names_none_stays_in_its_tenant(world):
    for tenant in TENANTS:
        for row in READS:
            if row.has_names:
                continue
            owners = {"all": [ALL, *world.owners], "default": ["default"], "shared": [ALL]}[row.unnamed]
            answer = await ask(world, (tenant, None), row, {})
            assert world.told_by(answer) == expected(world, row, tenant, owners), row
        for route, what in WHOLE_TENANT.items():
            assert (await world.clients[tenant, "a"].request(*route.split(), **what)).status_code == 403
        counts = (await world.clients[tenant, None].get("/v1/stats")).json()
        assert counts["memories"] == 3 * len(world.owners) + 1


@pytest.mark.parametrize("world", ["sqlite"], indirect=True)
async def test_a_token_of_an_owner_may_name_no_other_and_nobody_may_name_the_empty_one(world):
    for turn, row in enumerate(OF_AN_OWNER):
        tenant, owner = world.askers[turn % len(world.askers)]
        names = world.names[tenant, owner]
        for asker, named, status in (((tenant, owner), next_to(world, owner), 403), ((tenant, None), "", 422)):
            answer = await ask(world, asker, row, names, owner=named)
            assert answer.status_code == status, (row, answer.text)
            assert world.told_by(answer) == set(), row


@pytest.mark.parametrize("world", ["sqlite"], indirect=True)
async def test_pages_tile_and_their_cursors_are_of_no_use_to_another(world):
    for turn, row in enumerate(each for each in READS if each.page):
        for tenant, owner in (world.askers[turn % len(world.askers)], world.askers[-1 - turn % len(world.askers)]):
            names, told, cursor = world.names[tenant, owner], set(), {}
            while cursor is not None:
                answer = await ask(world, (tenant, owner), row, names, limit=row.page, **cursor)
                told |= world.told_by(answer)
                following = answer.json()["next_cursor"]
                cursor = None if following is None else {"cursor": following}
                elsewhere = TENANTS[1 - TENANTS.index(tenant)]
                for other in ((tenant, next_to(world, owner)), (tenant, None), (elsewhere, owner)) if cursor else ():
                    refused = await ask(world, other, row, names, limit=row.page, **cursor)
                    assert (refused.status_code, world.told_by(refused)) == (422, set())
            assert told == expected(world, row, tenant, [owner]), row


def take_the_owner_for_another(world, monkeypatch):
    monkeypatch.setattr(Caller, "owner", lambda caller, asked: next_to(world, caller.principal.owner or asked))
    real = mcp_mount.principal_of
    monkeypatch.setattr(
        mcp_mount, "principal_of", lambda scope: replace(real(scope), owner=next_to(world, real(scope).owner))
    )
    return TENANTS[0], next_to(world, "a_")


def take_the_tenant_for_another(world, monkeypatch):
    class Crossed:
        async def of(self, tenant, real=world.app.state.kernels):
            return await real.of(TENANTS[1 - TENANTS.index(tenant)])

    monkeypatch.setattr(world.app.state, "kernels", Crossed())
    return TENANTS[1], "a_"


@pytest.mark.parametrize("world", ["sqlite"], indirect=True)
@pytest.mark.parametrize("plant", [take_the_owner_for_another, take_the_tenant_for_another])
async def test_the_sweep_sees_a_leak_on_every_route(world, monkeypatch, plant):
    asker = TENANTS[0], "a_"
    other = plant(world, monkeypatch)
    world.missing.clear()
    for row in READS:
        if "{my_" in repr(row):
            continue  # asks for a thing of the asker's own too, which the leak hides
        if row.has_names:
            assert await differs(world, asker, row, other), row
        elif row.own:
            answer = await ask(world, asker, row, world.names[asker])
            assert {each[:2] for each in world.told_by(answer)} >= {other}, row
            assert wrong(world, row, answer, *asker)
    world.missing.clear()


@pytest.mark.parametrize("world", ["sqlite"], indirect=True)
async def test_the_sweep_sees_that_an_owner_is_taken_for_everybody_by_the_counts_too(world, monkeypatch):
    monkeypatch.setattr(Caller, "owner", lambda *_: None)
    for row in READS:
        if row.says and not row.has_names:
            answer = await ask(world, world.askers[0], row, world.names[world.askers[0]])
            assert wrong(world, row, answer, *world.askers[0]), row

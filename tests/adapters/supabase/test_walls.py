"""Whom the keys let in: a service to all tenants, a user to one, the anon key to none, and nobody to the tables."""

import httpx2
import pytest

from lamina.domain.scope import Scope
from lamina.errors import AdapterError, ConfigError, ScopeError
from lamina.ports.memory_adapter import Update
from lamina.testing.memory_contract.material import LIVE, NOW, by_text, by_vector, ids, listed, memory, put

ACME = Scope("acme")
OTHER = Scope("other")


@pytest.fixture
async def of_acme(opened, supabase):
    """A user's adapter, over a collection in which two tenants have a memory each under the same id."""
    service = await opened()
    await put(service, memory(embedding=[1.0, 0.0]), memory(tenant="other", content="a lamp of others"))
    await service.save_meta(OTHER, "fingerprint", "theirs", NOW)
    return await opened(anon_key=supabase.anon_key, user_token=supabase.of_user("acme"), database_url=None)


async def test_a_user_does_everything_in_the_tenant_of_the_token(of_acme):
    await put(of_acme, memory("m2", "a second lamp", embedding=[0.0, 1.0]))
    assert await of_acme.update(ACME, "m2", {"content": "a changed lamp"})
    await of_acme.touch(ACME, ["m2"], NOW)
    await of_acme.save_meta(ACME, "fingerprint", "ours", NOW)
    assert ids(await listed(of_acme, ACME)) == ["m1", "m2"]
    assert ids(await by_text(of_acme, "changed", ACME)) == ["m2"]
    assert ids(await by_vector(of_acme, [0.0, 1.0], ACME)) == ["m2", "m1"]
    assert [each.content for each in await of_acme.history(ACME, "m2")] == ["a second lamp"]
    assert await of_acme.load_meta(ACME, "fingerprint") == "ours"
    assert await of_acme.delete(ACME, "m2")


CALLS = {
    "get": lambda adapter: adapter.get(OTHER, "m1"),
    "list": lambda adapter: listed(adapter, OTHER),
    "count": lambda adapter: adapter.count(OTHER, LIVE),
    "text": lambda adapter: by_text(adapter, "lamp", OTHER),
    "vector": lambda adapter: by_vector(adapter, [1.0, 0.0], OTHER),
    "history": lambda adapter: adapter.history(OTHER, "m1"),
    "load_meta": lambda adapter: adapter.load_meta(OTHER, "fingerprint"),
    "save_meta": lambda adapter: adapter.save_meta(OTHER, "fingerprint", "mine", NOW),
    "store": lambda adapter: put(adapter, memory("new", tenant="other")),
    "replace": lambda adapter: put(adapter, memory(tenant="other")),
    "if_new": lambda adapter: adapter.store_many(OTHER, [memory(tenant="other")], if_new=True),
    "update": lambda adapter: adapter.update_many(OTHER, [Update("m1", {"content": "mine"})]),
    "delete": lambda adapter: adapter.delete(OTHER, "m1"),
    "touch": lambda adapter: adapter.touch(OTHER, ["m1"], NOW),
    "find_duplicate": lambda adapter: adapter.find_twins(OTHER, [memory("x", "a lamp of others", tenant="other")]),
    "statistics": lambda adapter: adapter.term_statistics(OTHER, ["lamp"], NOW),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_a_user_does_not_reach_another_tenant(of_acme, opened, call):
    with pytest.raises(ScopeError):
        await call(of_acme)
    service = await opened()
    [left] = await listed(service, OTHER)
    assert (left.content, left.revision, left.access_count) == ("a lamp of others", 1, 0)
    assert await service.load_meta(OTHER, "fingerprint") == "theirs"


async def _post(supabase, function, arguments, **headers):
    async with httpx2.AsyncClient() as client:
        return await client.post(f"{supabase.url}/rest/v1/rpc/{function}", json=arguments, headers=headers)


def _as_user(supabase, **claims):
    token = supabase.jwt(**{"role": "authenticated", **claims})
    return {"apikey": supabase.anon_key, "Authorization": f"Bearer {token}"}


async def test_a_commit_with_another_tenant_is_refused_whatever_stands_in_it(of_acme, supabase, table):
    """Whoever has the anon key and a token can call the functions without this library."""
    change = {"id": "m1", "old": None, "entry": "{}", "tenant": "other"}
    arguments = {"p_tenant": "other", "p_token": "0" * 32, "p_changes": [change], "p_controls": []}
    answer = await _post(supabase, f"{table}__commit", arguments, **_as_user(supabase, tenant="acme"))
    assert (answer.status_code, answer.json()["code"]) == (403, "42501")


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"tenant": None},
        {"tenant": ""},
        {"user_metadata": {"tenant": "other"}},
        {"tenant": "acme", "app_metadata": {"tenant": "other"}},
        {"tenant": ["other"]},
        {"app_metadata": "other"},
        {"tenant": "Other"},
        {"tenant": "other "},
    ],
    ids=str,
)
async def test_only_the_claim_itself_opens_a_tenant(of_acme, supabase, table, claims):
    asked = {"p_query": {"tenant": "other"}}
    answer = await _post(supabase, f"{table}__count", asked, **_as_user(supabase, **claims))
    assert answer.status_code == 403
    right = await _post(supabase, f"{table}__count", asked, **_as_user(supabase, app_metadata={"tenant": "other"}))
    assert (right.status_code, right.json()) == (200, 1)


@pytest.mark.parametrize("query", [{}, {"tenant": None}, {"tenant": ""}, {"owner": "ada"}], ids=str)
async def test_no_tenant_is_no_tenant_even_for_a_service(opened, supabase, table, query):
    await opened()
    headers = {"apikey": supabase.service_key, "Authorization": f"Bearer {supabase.service_key}"}
    assert (await _post(supabase, f"{table}__count", {"p_query": query}, **headers)).status_code == 400


@pytest.mark.parametrize("function", ["admit", "where", "condition", "set_controls", "index"])
async def test_inner_functions_are_nobodys(of_acme, supabase, table, function):
    arguments = {
        "admit": {"p_tenant": "acme"},
        "where": {"node": {}, "place": []},
        "condition": {"q": {"tenant": "acme"}},
        "set_controls": {"wanted": "x", "controls": []},
        "index": {"p_dimensions": 7},
    }[function]
    answer = await _post(supabase, f"{table}__{function}", arguments, **_as_user(supabase, tenant="acme"))
    assert (answer.status_code, answer.json()["code"]) == (403, "42501")


@pytest.mark.parametrize("part", ["", "__history", "__controls", "__commits", "__state"])
async def test_nobody_reads_the_tables_themselves(of_acme, supabase, table, part):
    anonymous = {"apikey": supabase.anon_key, "Authorization": f"Bearer {supabase.anon_key}"}
    for headers, status in ((anonymous, 401), (_as_user(supabase, tenant="acme"), 403)):
        async with httpx2.AsyncClient() as client:
            answer = await client.get(f"{supabase.url}/rest/v1/{table}{part}", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (status, "42501")


@pytest.mark.parametrize("part", ["", "__controls"])
async def test_who_was_granted_the_tables_still_sees_one_tenant_only(of_acme, supabase, table, part):
    await of_acme.save_meta(ACME, "fingerprint", "ours", NOW)
    supabase.run_on(table, f"GRANT ALL ON {{table}}{part} TO authenticated")
    async with httpx2.AsyncClient() as client:
        url = f"{supabase.url}/rest/v1/{table}{part}"
        rows = (await client.get(url, headers=_as_user(supabase, tenant="acme"))).json()
        assert {row.get("tenant", "acme") for row in rows} == {"acme"}
        assert len({row["tenant_key"] for row in rows}) == 1
        assert (await client.get(url, headers=_as_user(supabase))).json() == []


async def test_the_anon_key_alone_opens_nothing_and_the_error_says_what_does(opened, supabase):
    await opened()
    for key in (supabase.anon_key, supabase.publishable_key):
        with pytest.raises(AdapterError, match="service_key"):
            await opened(anon_key=key, database_url=None)


async def test_keys_that_are_no_tokens_are_exchanged_by_the_gateway(opened, supabase):
    service = await opened(service_key=supabase.secret_key)
    await put(service, memory())
    user = await opened(anon_key=supabase.publishable_key, user_token=supabase.of_user("acme"), database_url=None)
    assert ids(await listed(user)) == ["m1"]


async def test_a_token_that_is_renewed_is_asked_for_at_every_call(opened, supabase):
    await opened()
    tokens = [supabase.of_user("acme")]
    adapter = await opened(anon_key=supabase.anon_key, user_token=lambda: tokens[-1], database_url=None)
    tokens.append(supabase.jwt(role="authenticated", tenant="acme", exp=1))
    with pytest.raises(AdapterError, match="expired"):
        await listed(adapter)
    tokens.append(supabase.of_user("acme"))
    assert await listed(adapter) == []


@pytest.mark.parametrize("key", ["eyJhbGciOi.wrong.key", "sb_secret_wrong"])
async def test_a_wrong_key_is_refused_at_once_and_shown_nowhere(opened, supabase, table, key):
    await opened()
    supabase.requests.clear()
    with pytest.raises(AdapterError, match="refuses the key") as failure:
        await opened(service_key=key)
    assert len(supabase.requests) == 1
    shown = f"{failure.value} {failure.value!r} {failure.value.__cause__!r}"
    assert key not in shown
    assert "wrong" not in shown


@pytest.mark.parametrize("token", [None, "", "é", 7, "a b"], ids=repr)
async def test_a_function_that_gives_no_token_is_named(opened, supabase, token):
    await opened()
    with pytest.raises(ConfigError) as refusal:
        await opened(anon_key=supabase.anon_key, user_token=lambda: token, database_url=None)
    assert refusal.value.field == "user_token"

"""How tables and functions get into the project, and what is refused to be touched."""

import asyncio

import pytest

from lamina.adapters.supabase import SupabaseAdapter
from lamina.adapters.supabase.setup import setup_sql
from lamina.errors import AdapterError, AdapterUnavailable, ConfigError, StoreDamaged
from lamina.testing.memory_contract.material import by_text, by_vector, ids, listed, memory, put


async def test_without_a_way_to_make_them_the_error_says_what_to_run_and_that_works(opened, supabase, table):
    with pytest.raises(AdapterError) as failure:
        await opened(database_url=None)
    assert f"SupabaseAdapter.setup_sql(table='{table}', schema='public')" in str(failure.value)
    supabase.run(SupabaseAdapter.setup_sql(table=table), user="project_owner")  # as the SQL editor does
    adapter = SupabaseAdapter(supabase.url, service_key=supabase.service_key, table=table)
    while ("public", f"{table}__version") not in supabase._cached:  # noqa: ASYNC110 - of another thread
        await asyncio.sleep(0.001)
    await adapter.initialize()
    await put(adapter, memory())
    assert ids(await listed(adapter)) == ["m1"]
    await adapter.close()


async def test_the_management_api_makes_them_too(opened, supabase):
    way = {"access_token": supabase.access_token, "project_ref": supabase.project, "management_url": supabase.url}
    adapter = await opened(database_url=None, **way)
    await put(adapter, memory())
    assert ids(await listed(adapter)) == ["m1"]


@pytest.mark.parametrize("wrong", [{"access_token": "sbp_wrong"}, {"project_ref": "wrongref"}], ids=str)
async def test_a_management_api_that_refuses_is_an_error_without_the_token(opened, supabase, wrong):
    way = {"access_token": supabase.access_token, "project_ref": supabase.project, "management_url": supabase.url}
    with pytest.raises(AdapterError) as failure:
        await opened(database_url=None, **{**way, **wrong})
    assert "sbp_" not in str(failure.value)


async def test_a_database_that_is_not_there_is_an_error_without_its_url(opened):
    with pytest.raises(AdapterUnavailable) as failure:
        await opened(database_url="postgresql://u:secret@127.0.0.1:1/postgres")
    assert "secret" not in f"{failure.value} {failure.value.__cause__!r}"


async def test_setting_up_again_changes_nothing_that_is_kept(opened, supabase, table):
    adapter = await opened()
    await put(adapter, memory(embedding=[1.0, 0.0]))
    for _ in range(2):
        supabase.run(setup_sql(table, "public"), user="project_owner")
    await put(adapter, memory("m2"))
    assert [(each.id, each.seq) for each in await listed(adapter)] == [("m1", 1), ("m2", 2)]
    assert ids(await by_vector(adapter, [1.0, 0.0])) == ["m1"]


async def test_many_who_set_up_at_once_make_one_collection(opened):
    adapters = await asyncio.gather(*(opened() for _ in range(4)))
    await put(adapters[0], memory())
    assert ids(await listed(adapters[3])) == ["m1"]


async def test_what_a_newer_lamina_made_is_refused_and_left_alone(opened, supabase, table):
    await opened()
    supabase.run_on(table, "UPDATE {table}__state SET version = 99")
    with pytest.raises(StoreDamaged, match="layout 99"):
        await opened()
    supabase.run_on(table, 'DROP FUNCTION "{table}__version"()')
    with pytest.raises(StoreDamaged, match="newer Lamina"):  # the functions may be gone, and the tables not
        await opened()
    assert supabase.run_on(table, "SELECT version FROM {table}__state") == [(99,)]


async def test_a_table_of_somebody_else_is_left_alone(opened, supabase, table):
    supabase.run_on(table, "CREATE TABLE {table} (id integer)")
    with pytest.raises(AdapterError, match="did not make"):
        await opened()
    assert supabase.run_on(table, "SELECT count(*) FROM {table}") == [(0,)]


async def test_two_tables_never_see_each_other(opened, table):
    first, second = await opened(), await opened(table=f"{table}_2")
    await put(first, memory(embedding=[1.0, 0.0]))
    assert await listed(second) == await by_vector(second, [1.0, 0.0]) == await by_text(second, "harbour") == []
    await put(second, memory(embedding=[1.0, 0.0, 0.0]))
    assert len(await listed(first)) == len(await listed(second)) == 1


async def test_another_schema_that_is_exposed_will_do(opened, supabase, table):
    adapter = await opened(schema="other")
    await put(adapter, memory(embedding=[1.0, 0.0]))
    assert ids(await by_vector(adapter, [1.0, 0.0])) == ["m1"]
    assert supabase.run("SELECT to_regclass(%s)", f"public.{table}") == [(None,)]


async def test_a_schema_that_is_not_exposed_is_named(opened):
    with pytest.raises(AdapterError, match="expose"):
        await opened(schema="hidden")


NAMES = ["", "1a", "a-b", 'a"b', "a b", "a.b", "é", "a" * 41, "a__b", "a;drop", "a\n", None, 7]


@pytest.mark.parametrize("name", NAMES, ids=repr)
@pytest.mark.parametrize("field", ["table", "schema"])
def test_names_that_sql_would_have_to_quote_are_refused(field, name):
    with pytest.raises(ConfigError) as refusal:
        SupabaseAdapter.setup_sql(**{field: name})
    assert refusal.value.field == field


def test_the_longest_name_makes_no_longer_one_than_the_database_takes(supabase):
    name = "a" * 40
    supabase.run(setup_sql(name, "public"), user="project_owner")
    supabase.run(setup_sql(f"{name[:-1]}b", "public"), user="project_owner")
    rows = supabase.run("SELECT relname FROM pg_class WHERE starts_with(relname, %s)", name)
    assert max(len(row[0]) for row in rows) < 63


def test_nothing_is_left_to_fill_in():
    text = SupabaseAdapter.setup_sql(table="mine", schema="memo")
    assert not any(f"{{{name}}}" in text for name in ("table", "schema", "version", "kept", "search_path"))
    assert '"memo"."mine__commit"' in text


async def test_functions_that_were_dropped_are_named_and_come_back(opened, supabase, table):
    adapter = await opened()
    await put(adapter, memory())
    supabase.run_on(table, 'DROP FUNCTION "{table}__select"(jsonb, bigint, bigint, boolean, boolean)')
    with pytest.raises(AdapterError, match="setup_sql"):
        await listed(adapter)
    supabase.run(setup_sql(table, "public"), user="project_owner")
    assert ids(await listed(adapter)) == ["m1"]


async def test_an_old_pgvector_is_refused_with_the_remedy(opened, supabase):
    [(now,)] = supabase.run("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    supabase.run("UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'")
    try:
        with pytest.raises(AdapterError, match="ALTER EXTENSION vector UPDATE"):
            await opened()
    finally:
        supabase.run("UPDATE pg_extension SET extversion = %s WHERE extname = 'vector'", now)

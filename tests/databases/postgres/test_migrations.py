from __future__ import annotations

import asyncio

import psycopg
import pytest

from lamina.databases.postgres import PostgresDatabase
from lamina.databases.postgres.migrations import Component
from lamina.databases.postgres.schema import Schema
from lamina.errors import AdapterError, AdapterUnavailable, ConfigError, StoreDamaged

STEPS = [
    "CREATE TABLE {schema}.notes (id integer PRIMARY KEY, text text NOT NULL)",
    "ALTER TABLE {schema}.notes ADD COLUMN lang text; CREATE INDEX notes_by_lang ON {schema}.notes (lang)",
]


def versions(postgres, schema):
    return dict(postgres.run(f'SELECT component, version FROM "{schema}".schema_version'))  # noqa: S608 - the test's own


async def test_steps_are_taken_once_and_those_that_are_new_later(joined, postgres, postgres_schema, add, count):
    schema = Schema(postgres_schema)
    old = await joined(component=Component("notes", schema, STEPS[:1]))
    await old.write(add(1))
    await old.leave()
    for _ in range(2):
        new = await joined(component=Component("notes", schema, STEPS))
        assert await new.read(count) == 1
    assert versions(postgres, postgres_schema) == {"notes": 2}


async def test_components_of_one_schema_have_versions_of_their_own(joined, postgres, postgres_schema):
    schema = Schema(postgres_schema)
    await joined(component=Component("notes", schema, STEPS))
    await joined(component=Component("pictures", schema, ["CREATE TABLE {schema}.pictures (id integer)"]))
    assert versions(postgres, postgres_schema) == {"notes": 2, "pictures": 1}


async def test_tables_of_a_newer_lamina_are_refused_and_left_as_they_are(joined, postgres, postgres_schema):
    schema = Schema(postgres_schema)
    await joined(component=Component("notes", schema, STEPS))
    with pytest.raises(StoreDamaged, match=r"has the version 2 .* knows 1\. Use the newest Lamina"):
        await joined(component=Component("notes", schema, STEPS[:1]))
    assert versions(postgres, postgres_schema) == {"notes": 2}


async def test_old_code_that_is_running_does_not_write_into_newer_tables(joined, postgres_schema, add, count):
    schema = Schema(postgres_schema)
    old = await joined(component=Component("notes", schema, STEPS[:1]))
    await old.write(add(1))
    new = await joined(component=Component("notes", schema, STEPS))
    with pytest.raises(StoreDamaged, match="has the version 2"):
        await old.write(add(2))
    await new.write(add(3))
    assert await new.read(count) == 2


async def test_a_version_that_was_lost_is_damage(handle, postgres, postgres_schema, add):
    postgres.run(f'DELETE FROM "{postgres_schema}".schema_version')  # noqa: S608 - the test's own
    with pytest.raises(StoreDamaged, match="no longer says which version"):
        await handle.write(add(1))


async def test_a_step_that_fails_leaves_nothing_behind(joined, postgres, postgres_schema):
    schema = Schema(postgres_schema)
    with pytest.raises(AdapterError, match="syntax error"):
        await joined(component=Component("notes", schema, [*STEPS, "CREATE TABEL {schema}.x ()"]))
    assert postgres.run("SELECT 1 FROM pg_namespace WHERE nspname = %s", postgres_schema) == []
    await joined(component=Component("notes", schema, STEPS))
    assert versions(postgres, postgres_schema) == {"notes": 2}


async def test_many_that_begin_at_once_make_the_tables_once(joined, postgres, postgres_schema):
    component = Component("notes", Schema(postgres_schema), STEPS)
    await asyncio.gather(*(joined(component=component) for _ in range(8)))
    assert versions(postgres, postgres_schema) == {"notes": 2}


async def test_waiting_for_another_that_makes_the_tables_has_an_end(joined, postgres_url, postgres_schema):
    component = Component("notes", Schema(postgres_schema), STEPS)
    slow = Component("notes", component.schema, ["SELECT pg_sleep(1.5)", *STEPS])
    first = asyncio.create_task(joined(component=slow, statement_timeout=0.2))  # a step itself may take longer
    with psycopg.connect(postgres_url, autocommit=True) as watching:
        while not watching.execute("SELECT FROM pg_locks WHERE locktype = 'advisory'").rowcount:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    with pytest.raises(AdapterUnavailable, match="for now"):
        await joined(component=component, statement_timeout=0.1)
    await first


async def test_a_table_of_somebody_else_is_not_taken_over(joined, postgres, postgres_schema):
    postgres.run(f'CREATE SCHEMA "{postgres_schema}"')
    postgres.run(f'CREATE TABLE "{postgres_schema}".notes (mine text)')
    with pytest.raises(ConfigError, match=r"schema: .* has a table of notes that Lamina did not make. Choose another"):
        await joined()
    assert postgres.run(f'SELECT count(*) FROM "{postgres_schema}".notes') == [(0,)]  # noqa: S608 - the test's own


async def test_a_schema_that_was_made_beforehand_needs_no_right_to_make_schemas(
    postgres, postgres_database, notes, add, count
):
    postgres.run("CREATE ROLE guest LOGIN")
    try:
        postgres.run(f'CREATE SCHEMA "{notes.schema.name}" AUTHORIZATION guest', url=postgres_database)
        handle = PostgresDatabase(postgres_database.replace("postgres@", "guest@")).join(notes)
        await handle.prepare()
        await handle.write(add(1))
        assert await handle.read(count) == 1
        await handle.leave()
    finally:
        postgres.run("DROP OWNED BY guest", url=postgres_database)
        postgres.run("DROP ROLE guest")


@pytest.mark.parametrize(
    "name", ["", "1st", "pg_mine", "PG_mine", "a" * 64, 'x"; DROP SCHEMA public; --', "a.b", "a\x00b", "größe"]
)
def test_a_name_that_cannot_be_a_schemas_is_refused(name):
    with pytest.raises(ConfigError, match="schema"):
        Schema(name)


async def test_names_that_differ_in_case_only_are_two_schemas(joined, postgres):
    names = ["Case_of_test", "case_of_test"]
    try:
        for name in names:
            await joined(component=Component("notes", Schema(name), STEPS))
        found = postgres.run("SELECT nspname FROM pg_namespace WHERE lower(nspname) = 'case_of_test' ORDER BY 1")
        assert sorted(name for (name,) in found) == sorted(names)
    finally:
        for name in names:
            postgres.run(f'DROP SCHEMA "{name}" CASCADE')

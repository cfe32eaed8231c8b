from __future__ import annotations

from pathlib import Path

import pytest

from lamina.errors import AdapterError, ConfigError, InvalidType
from lamina.state import open_server_store, open_state
from lamina.state.opening import open_stores
from lamina.state.postgres import PostgresStateStore
from lamina.state.sqlite import SqliteServerStore, SqliteStateStore
from lamina.testing.state_contract.material import NOW, REF, begin


@pytest.mark.parametrize("as_place", [str, Path, "sqlite:///{}".format], ids=["text", "path", "url"])
async def test_a_path_is_a_file_of_sqlite(tmp_path, as_place):
    file = tmp_path / "some folder" / "a ?b#c%20d.db"
    async with open_state(as_place(file)) as store:
        assert isinstance(store, SqliteStateStore)
        await begin(store)
    assert file.is_file()


async def test_three_slashes_begin_a_relative_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with open_state("sqlite:///here.db"):
        pass
    assert (tmp_path / "here.db").is_file()


@pytest.mark.parametrize("place", [":memory:", "sqlite:///:memory:"])
async def test_memory_is_kept_nowhere(tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    async with open_state(place) as store:
        await begin(store)
    async with store:
        assert await store.get_thread(REF) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
async def test_a_url_of_postgresql_is_a_database(postgres_url, postgres_schema, scheme):
    url = postgres_url.replace("postgresql://", f"{scheme}://")
    async with open_state(url, schema=postgres_schema, connections=1) as store:
        assert isinstance(store, PostgresStateStore)
        await begin(store)
        assert await store.get_thread(REF) is not None


async def test_it_is_not_open_yet(tmp_path):
    with pytest.raises(AdapterError, match="initialize"):
        await open_state(tmp_path / "lamina.db").get_thread(REF)


@pytest.mark.parametrize(
    "place",
    [
        "mysql://mira:hunter2@h/d",
        "postgresql+psycopg://mira:hunter2@h/d",
        "https://h/d",
        "sqlite://",
        "sqlite:///",
        "sqlite://h/d.db",
        "://d",
        "",
    ],
)
def test_any_other_place_is_refused_with_those_that_are_known_and_without_a_password(place):
    with pytest.raises(ConfigError) as raised:
        open_state(place)
    assert "hunter2" not in str(raised.value)
    assert ":memory:" in str(raised.value)


@pytest.mark.parametrize("place", [None, 7, b"lamina.db"])
def test_what_is_no_place_is_refused(place):
    with pytest.raises(InvalidType, match="state_url"):
        open_state(place)


async def test_a_server_store_opens_where_a_state_store_does(tmp_path):
    file = tmp_path / "lamina.db"
    for place in (file, str(file), f"sqlite:///{file}"):
        async with open_state(place), open_server_store(place) as store:
            assert isinstance(store, SqliteServerStore)
            await store.note_tenant(str(place), now=NOW)
    async with open_server_store(file) as store:
        assert len(await store.tenants()) == 2
    assert [each.name for each in tmp_path.iterdir()] == ["lamina.db"]
    async with open_server_store(":memory:") as store:
        assert await store.tenants() == []
    with pytest.raises(ConfigError, match="state_url"):
        open_server_store("mysql://localhost/x")


async def test_both_stores_of_a_place_are_over_one_database(tmp_path):
    for place in (tmp_path / "lamina.db", ":memory:"):
        state, _, server = open_stores(place)
        assert state._database is server._database
        async with state, server:
            assert await state.list_threads("nobody") == []
            assert await server.list_tokens("nobody") == []
    state, _, server = open_stores("postgresql://mira@nowhere/memories")
    assert state._database is server._database

"""Which runner the options ask for, and the collection's tables made or brought up to date."""

from __future__ import annotations

from lamina.adapters._shared.layout_version import made_by_newer
from lamina.adapters._shared.records import Stale
from lamina.adapters._shared.where_sql import Sql, json_list
from lamina.adapters._shared.word_ranking import distinct_terms
from lamina.adapters.turso.address import Address
from lamina.adapters.turso.failures import BACKEND, damaged
from lamina.adapters.turso.remote import Remote
from lamina.adapters.turso.runner import Runner
from lamina.adapters.turso.tables import SCHEMA_VERSION, Tables
from lamina.domain.lexical import ANALYZER_VERSION
from lamina.errors import ConfigError

__all__ = ["opened", "runner_of", "vector_lengths"]

PAGE = 200


def runner_of(
    address: Address,
    token: str | None,
    tables: Tables,
    *,
    timeout: float,
    connect_timeout: float,
    busy_timeout: float,
    sync_every: float,
    connections: int,
) -> Runner:
    """What runs statements there.

    Raises:
        MissingExtra: it needs the library `libsql`, which is not installed.
    """
    if address.url is None and address.path is not None:
        from lamina.adapters.turso.local import Local

        return Local(address.path, busy_timeout=busy_timeout)
    url = address.url or ""
    remote = Remote(
        url, token, address.place, timeout=timeout, connect_timeout=connect_timeout, connections=connections
    )
    if address.path is None:
        return remote
    from lamina.adapters.turso.replica import Replica

    return Replica(remote, address.path, token, tables, sync_every=sync_every, timeout=timeout)


def opened(runner: Runner, tables: Tables, *, indexed: bool) -> frozenset[int]:
    """Make the collection's tables, or bring them up to date; the lengths that there are tables of vectors for.

    Raises:
        ConfigError: the database has tables of such names for something else.
        StoreDamaged: a newer Lamina made them; nothing was changed.
    """
    names = _names(runner, tables)
    if tables.counters not in names:
        if names:
            problem = f"the database has {min(names)} for something else"
            raise ConfigError("table", problem, "Choose another name; SQLite tells no case in names.")
        _create(runner, tables)
    _check_version(runner, tables)
    lengths = vector_lengths(runner, tables)
    if indexed:
        runner.write([sql for length in sorted(lengths) for sql in tables.create_vectors(length, indexed=True)])
    return lengths


def vector_lengths(runner: Runner, tables: Tables) -> frozenset[int]:
    """The lengths that there are tables of vectors for."""
    start = f"{tables.prefix}_vectors_"
    query = "SELECT substr(name, ?) FROM sqlite_master WHERE type = 'table' AND substr(name, 1, ?) = ?"
    found = runner.read(Sql(query, (len(start) + 1, len(start), start)))
    return frozenset(int(rest) for (rest,) in found if rest.isascii() and rest.isdecimal())


def _names(runner: Runner, tables: Tables) -> set[str]:
    """Which of the collection's tables are there, as they are written there."""
    query = "SELECT name FROM sqlite_master WHERE name COLLATE NOCASE IN (SELECT value FROM json_each(?))"
    return {name for (name,) in runner.read(Sql(query, (json_list(sorted(tables.taken)),)))}


def _create(runner: Runner, tables: Tables) -> None:
    taken = "SELECT 1 FROM sqlite_master WHERE name = ?"
    guard = Sql(f"SELECT json(CASE WHEN EXISTS ({taken}) THEN '' ELSE 'null' END)", (tables.counters,))
    try:
        runner.write(list(tables.create()), guard)
    except Stale:
        return  # another process was faster


def _check_version(runner: Runner, tables: Tables) -> None:
    rows = runner.read(tables.sql("SELECT name, value FROM {counters}"))
    numbers: dict[str, int] = dict(rows)
    if "schema" not in numbers or "analyzer" not in numbers:
        raise damaged("the tables do not say which version they are")
    if numbers["schema"] > SCHEMA_VERSION:
        raise made_by_newer(BACKEND, f"the collection {tables.prefix}", numbers["schema"], SCHEMA_VERSION)
    if numbers["analyzer"] != ANALYZER_VERSION:
        _index_anew(runner, tables)


def _index_anew(runner: Runner, tables: Tables) -> None:
    """Index all contents again, because this version of the analyzer gives other terms; page by page."""
    query = (
        "SELECT {text}.rowid, json_extract(m.entry, '$.content') FROM {text} "
        "CROSS JOIN {memories} AS m ON m.seq = {text}.rowid WHERE {text}.rowid > ? ORDER BY {text}.rowid LIMIT ?"
    )
    after = 0
    while page := runner.read(tables.sql(query, after, PAGE)):
        change = "UPDATE {text} SET terms = ? WHERE rowid = ?"
        runner.write([tables.sql(change, " ".join(distinct_terms(content)), seq) for seq, content in page])
        after = page[-1][0]
    runner.write([tables.sql("UPDATE {counters} SET value = ? WHERE name = 'analyzer'", ANALYZER_VERSION)])

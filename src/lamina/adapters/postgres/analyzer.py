"""The index of words follows the analyzer of this code."""

from __future__ import annotations

from typing import Any, Final

from lamina.adapters._shared.word_ranking import distinct_terms
from lamina.adapters.postgres.arrays import bigints_of
from lamina.adapters.postgres.rows import hashes_of
from lamina.databases.postgres.failures import BACKEND
from lamina.databases.postgres.migrations import take_turn
from lamina.databases.postgres.schema import Session
from lamina.domain.lexical import ANALYZER_VERSION
from lamina.errors import StoreDamaged

__all__ = ["follow_analyzer"]

PAGE: Final = 500


def follow_analyzer(session: Session, table: str) -> None:
    """Index all contents anew, if what is there was made by an earlier version of the analyzer.

    Raises:
        StoreDamaged: it was made by a later one; nothing was changed.
    """
    component = f"words of {table}"
    if _version(session, component) == ANALYZER_VERSION:
        return
    take_turn(session)
    version = _version(session, component)
    if version is not None and version > ANALYZER_VERSION:
        problem = f"the words of {table} were indexed by a newer Lamina"
        raise StoreDamaged(BACKEND, problem, "Use the newest Lamina with this database; it was not changed.")
    if version is not None and version < ANALYZER_VERSION:
        _index_anew(session)
    session.execute(
        "INSERT INTO {schema}.schema_version (component, version) VALUES (%s, %s)"
        " ON CONFLICT (component) DO UPDATE SET version = excluded.version",
        (component, ANALYZER_VERSION),
    )


def _version(session: Session, component: str) -> int | None:
    query = "SELECT version FROM {schema}.schema_version WHERE component = %s"
    row = session.execute(query, (component,)).fetchone()
    return None if row is None else int(row[0])


def _index_anew(session: Session) -> None:
    """The tables' owner passes the policies meanwhile, which are the same again when this can be seen."""
    for forced in ("NO FORCE", "FORCE"):
        if forced == "FORCE":
            _write_words(session)
        for table in ("{tenants}", "{memories}"):
            session.execute(f"ALTER TABLE {table} {forced} ROW LEVEL SECURITY")


def _write_words(session: Session) -> None:
    query = (
        "SELECT m.tenant, m.seq, t.name, m.content FROM {memories} AS m JOIN {tenants} AS t ON t.key = m.tenant"
        " WHERE (m.tenant, m.seq) > (%s, %s) ORDER BY m.tenant, m.seq LIMIT %s"
    )
    last: tuple[Any, ...] = (0, 0)
    while rows := session.execute(query, (*last, PAGE)).fetchall():
        made = [
            (bigints_of(hashes_of(name, distinct_terms(content))), tenant, seq) for tenant, seq, name, content in rows
        ]
        session.execute_many("UPDATE {words} SET words = %s WHERE tenant = %s AND seq = %s", made)
        last = rows[-1][:2]

"""Whether pgvector can be used, and what it is given: a column of directions, and an index for each length.

The column is computed by the server from the exact vector, so that whoever writes need not know of it, and so
that it is there for all rows at once when pgvector is installed later. Directions have length one: then the
inner product is the cosine, a zero vector is 0 to everything, and huge numbers do not overflow.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg import sql

from lamina.adapters.postgres.tables import name_of
from lamina.databases.postgres.migrations import take_turn
from lamina.databases.postgres.schema import Session

__all__ = ["LONGEST_INDEXED", "LONGEST_VECTOR", "Pgvector", "find_pgvector", "make_index", "prepare_pgvector"]

LONGEST_VECTOR: Final = 16_000
"""Dimensions that pgvector can hold; what is longer is compared here."""
LONGEST_INDEXED: Final = 4_000
"""Dimensions that an index can hold, as numbers of 16 bits from 2,001 on."""

_LONGEST_EXACT: Final = 2_000
_OLDEST: Final = (0, 7)
_ITERATIVE: Final = (0, 8)
_UNAVAILABLE: Final = (
    psycopg.errors.InsufficientPrivilege,
    psycopg.errors.UndefinedFile,
    psycopg.errors.FeatureNotSupported,
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pgvector:
    """An installed pgvector, in whatever schema it is."""

    schema: str
    version: tuple[int, ...]

    @property
    def scans_on(self) -> bool:
        """Whether an index scan goes on until enough of what it finds passes the filter: from 0.8 on."""
        return self.version >= _ITERATIVE

    @property
    def parts(self) -> dict[str, sql.Composable]:
        """Words for statements: types, functions and operators, wherever they are."""
        here = sql.Identifier(self.schema)
        return {
            "vector": sql.Identifier(self.schema, "vector"),
            "l2_normalize": sql.Identifier(self.schema, "l2_normalize"),
            "away": sql.SQL("OPERATOR({}.<#>)").format(here),
        }

    def indexed(self, dimensions: int) -> dict[str, sql.Composable]:
        """Words for statements on the vectors of one length: the type as which they are indexed, and its operators."""
        kind = "vector" if dimensions <= _LONGEST_EXACT else "halfvec"
        length = sql.SQL(str(int(dimensions)))
        return self.parts | {
            "kind": sql.SQL("{}({})").format(sql.Identifier(self.schema, kind), length),
            "operators": sql.Identifier(self.schema, f"{kind}_ip_ops"),
            "length": length,
        }


def find_pgvector(session: Session) -> Pgvector | None:
    """The pgvector that the collection's vectors are prepared for, or None."""
    installed = _installed(session)
    return installed if installed is not None and _has_directions(session) else None


def prepare_pgvector(session: Session) -> Pgvector | None:
    """Install pgvector and prepare the vectors for it, as far as the server and the user's rights allow; else None."""
    found = find_pgvector(session)
    if found is not None:
        return found
    if _installed(session) is None and not _is_at_hand(session):
        return None
    take_turn(session)
    try:
        with session.connection.transaction():
            return _prepare(session)
    except _UNAVAILABLE as error:
        said = (error.diag.message_primary or "").strip()
        _log.warning(
            "pgvector cannot be used, so that vectors are compared one by one: %s. Let an owner of the database "
            "run CREATE EXTENSION vector, and open the tables once as their owner.",
            said,
        )
        return None


def make_index(session: Session, table: str, pgvector: Pgvector, dimensions: int) -> None:
    """See to it that the vectors of this length have an index, if they can have one."""
    if dimensions > LONGEST_INDEXED or not pgvector.scans_on:
        return
    name = name_of(table, f"vectors_{dimensions}")
    if session.execute(
        "SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE n.nspname = %s AND c.relname = %s",
        (session.schema.name, name),
    ).rowcount:
        return
    take_turn(session)
    try:
        with session.connection.transaction():
            session.execute(
                "CREATE INDEX IF NOT EXISTS {index} ON {vectors} USING hnsw ((direction::{kind}) {operators})"
                " WITH (ef_construction = 128) WHERE dimensions = {length}",
                index=sql.Identifier(name),
                **pgvector.indexed(dimensions),
            )
    except psycopg.errors.InsufficientPrivilege:
        _log.warning(
            "vectors of %d dimensions have no index, so that they are compared one by one: only the owner of the "
            "tables can make one. Store one such vector as that owner.",
            dimensions,
        )


def _prepare(session: Session) -> Pgvector | None:
    session.execute("CREATE EXTENSION IF NOT EXISTS vector")
    installed = _installed(session)
    if installed is None or installed.version < _OLDEST:
        return None
    if not _has_directions(session):
        session.execute(
            "ALTER TABLE {vectors} ADD COLUMN direction {vector} GENERATED ALWAYS AS"
            " (CASE WHEN dimensions <= {longest} THEN {l2_normalize}(exact::{vector}) END) STORED",
            longest=sql.SQL(str(LONGEST_VECTOR)),
            **installed.parts,
        )
        session.execute("ALTER TABLE {vectors} ALTER COLUMN direction SET STORAGE MAIN")
    return installed


def _installed(session: Session) -> Pgvector | None:
    query = (
        "SELECT n.nspname, e.extversion FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace"
        " WHERE e.extname = 'vector'"
    )
    row = session.execute(query).fetchone()
    if row is None:
        return None
    version = tuple(int(part) for part in row[1].split(".") if part.isdigit())
    return Pgvector(row[0], version) if version >= _OLDEST else None


def _is_at_hand(session: Session) -> bool:
    return bool(session.execute("SELECT FROM pg_available_extensions WHERE name = 'vector'").rowcount)


def _has_directions(session: Session) -> bool:
    query = "SELECT FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = 'direction' AND NOT attisdropped"
    return bool(session.execute(query, (session.schema.sql("{vectors}").decode(),)).rowcount)

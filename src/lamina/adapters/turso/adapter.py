"""The adapter: the primitives of the port as statements, the same on a remote database, a replica and a file."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from os import PathLike
from typing import ClassVar, Final, TypeVar

from lamina.adapters._shared.directions import rank_by_closeness
from lamina.adapters._shared.entry_text import UNREADABLE, entry_of_text
from lamina.adapters._shared.options import DEFAULT_TABLE, check_seconds
from lamina.adapters._shared.record_adapter import RecordAdapter
from lamina.adapters._shared.records import Commit, Control, Stored
from lamina.adapters._shared.where_sql import Sql, conjunction, json_list, scope_sql
from lamina.adapters.turso import nearest
from lamina.adapters.turso.address import address_of
from lamina.adapters.turso.commits import changes_of, guard_of, lengths_of
from lamina.adapters.turso.failures import BACKEND, Failed, damaged, translated
from lamina.adapters.turso.opening import opened, runner_of, vector_lengths
from lamina.adapters.turso.reach import condition_of
from lamina.adapters.turso.runner import Row
from lamina.adapters.turso.tables import Tables
from lamina.adapters.turso.words import is_indexed, match_of
from lamina.domain.filters import MemoryFilter
from lamina.domain.memory import Layer, MemoryEntry, Vector
from lamina.domain.scope import Scope
from lamina.ports.memory_adapter import Capability, ListOptions, Order, SearchHit, SearchOptions

__all__ = ["TursoAdapter"]

T = TypeVar("T")

_WORDS_AT_ONCE: Final = 100


class TursoAdapter(RecordAdapter):
    """Memories in a libSQL database: on Turso or another server, in a replica of that here, or in a file.

    Args:
        url: `libsql://…` or `https://…` (`http://…` without encryption), or the path of a file.
        path: In place of `url`: a file, made with its folders if there is none.
        auth_token: The token for the database behind the url.
        replica_path: A file of this machine that is kept in step with the database behind the url and answers
            what is read. One process uses it at a time.
        table: Prefix of the collection's tables; one database holds several collections.
        sync_every: With `replica_path`: how old, in seconds, what others wrote may be when it is read. What was
            written through this adapter is always seen.
        vector_index: Whether vectors get an approximate index, which is asked where more than 10,000 are in
            reach. It makes each write of a vector several milliseconds slower and takes tens of kilobytes for it.
        timeout: Seconds to wait for an answer of the server.
        connect_timeout: Seconds to wait for a connection to it.
        busy_timeout: With a file: seconds to wait for another process that is writing.
        threads: How many calls may be under way at the same time.

    Raises:
        ConfigError: an option is wrong, or two do not go together.
        MissingExtra: a file or a replica is asked for, and the library `libsql` is not installed.
    """

    name = BACKEND
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability) - {Capability.EXPIRY}

    def __init__(
        self,
        url: str | None = None,
        *,
        path: str | PathLike[str] | None = None,
        auth_token: str | None = None,
        replica_path: str | PathLike[str] | None = None,
        table: str = DEFAULT_TABLE,
        sync_every: float = 60.0,
        vector_index: bool = False,
        timeout: float = 30.0,
        connect_timeout: float = 10.0,
        busy_timeout: float = 30.0,
        threads: int = 8,
    ) -> None:
        limits = {"timeout": timeout, "connect_timeout": connect_timeout, "busy_timeout": busy_timeout}
        check_seconds(**limits, sync_every=sync_every)
        super().__init__(threads=threads)
        self._tables = Tables(table)
        address = address_of(url, path, replica_path, auth_token)
        self._runner = runner_of(
            address, auth_token, self._tables, sync_every=sync_every, connections=threads, **limits
        )
        self._is_indexed = vector_index
        self._lengths: frozenset[int] = frozenset()

    def __repr__(self) -> str:
        return f"<TursoAdapter {self._runner.place} {self._tables.prefix}>"

    def _open(self) -> None:
        self._runner.open()
        self._lengths = opened(self._runner, self._tables, indexed=self._is_indexed)

    def _shut(self) -> None:
        self._runner.close()

    def _translated(self) -> AbstractContextManager[None]:
        return translated(self._runner.place)

    # What is worked out from what was read must be worked out from what is there now, on a replica too.
    def _until_fresh(self, names: Iterable[tuple[str, str]], attempt: Callable[[], T]) -> T:
        with self._runner.fresh():
            return super()._until_fresh(names, attempt)

    def _load(self, tenant: str, ids: Sequence[str]) -> builtins.list[Stored]:
        return self._stored("{memories} AS m ON m.tenant = ? AND m.id = asked.value", ids, Sql("1", (tenant,)))

    def _alike(self, scope: Scope, layer: Layer, digests: Sequence[str]) -> builtins.list[Stored]:
        # Named, or SQLite reads a whole partition for a digest that it lacks.
        alike = "{memories} AS m INDEXED BY {by_digest} ON m.tenant = ? AND m.digest = asked.value"
        where = scope_sql(scope, frozenset({layer}), partition="m")
        return self._stored(alike, digests, Sql(where.text, (scope.tenant, *where.parameters)))

    def _stored(self, found: str, values: Sequence[str], where: Sql) -> builtins.list[Stored]:
        asked = "SELECT {{columns}} FROM json_each(?) AS asked CROSS JOIN {found} WHERE {where} ORDER BY m.seq"
        query = asked.replace("{found}", found)
        sql = self._tables.sql(query, json_list(dict.fromkeys(values)), *where.parameters, where=where.text)
        return [Stored(_entry(row), row[0]) for row in self._rows(sql, embeddings=True)]

    def _load_controls(self, tenant: str, keys: Sequence[str]) -> dict[str, Control]:
        query = (
            "SELECT key, value, version FROM {controls} WHERE tenant = ? AND key IN (SELECT value FROM json_each(?))"
        )
        rows = self._runner.read(self._tables.sql(query, tenant, json_list(keys)))
        return {key: Control(value, version) for key, value, version in rows}

    def _reserve(self, number: int) -> int:
        query = "UPDATE {counters} SET value = value + ? WHERE name = 'seq' RETURNING value"
        [rows] = self._runner.write([self._tables.sql(query, number)])
        if not rows:
            raise damaged("the counter of the memories is gone")
        last: int = rows[0][0]
        return last - number + 1

    def _commit(self, commit: Commit) -> None:
        new = lengths_of(commit) - self._lengths
        create = [sql for each in sorted(new) for sql in self._tables.create_vectors(each, indexed=self._is_indexed)]
        self._runner.write([*create, *changes_of(self._tables, commit)], guard_of(self._tables, commit))
        self._lengths |= new

    def _select(self, options: ListOptions) -> builtins.list[MemoryEntry]:
        where = condition_of(self._tables, options.scope, options.filter)
        if options.after is not None:
            where = conjunction([where, Sql("m.seq > ?", (options.after,))])
        by_relevance = options.order is Order.RELEVANCE
        order = "m.relevance DESC, m.created_at DESC, m.id" if by_relevance else "m.seq"
        query = "SELECT {{columns}} FROM {memories} AS m WHERE {where} ORDER BY {order} LIMIT ? OFFSET ?"
        parameters = (*where.parameters, options.limit, options.offset)
        sql = self._tables.sql(query, *parameters, where=where.text, order=order)
        return [_entry(row) for row in self._rows(sql, embeddings=options.include_embeddings)]

    def _count(self, scope: Scope, filter: MemoryFilter) -> int:
        where = condition_of(self._tables, scope, filter)
        query = "SELECT count(*) FROM {memories} AS m WHERE {where}"
        [(number,)] = self._runner.read(self._tables.sql(query, *where.parameters, where=where.text))
        return int(number)

    def _nearest(self, embedding: Vector, options: SearchOptions) -> builtins.list[SearchHit]:
        length = len(embedding)
        if length not in self._lengths:
            self._lengths = vector_lengths(self._runner, self._tables)  # another process may have brought it
            if length not in self._lengths:
                return []
        where = condition_of(self._tables, options.scope, options.filter)
        if self._is_indexed:
            of_length = conjunction([where, Sql("m.dimensions = ?", (length,))])
            hits = self._from_index(embedding, of_length, options)
            if hits is not None:
                return hits
        rows = self._rows(nearest.exact(self._tables, embedding, where, options.limit), embeddings=True)
        return _ranked(embedding, rows, options)

    def _from_index(self, embedding: Vector, where: Sql, options: SearchOptions) -> builtins.list[SearchHit] | None:
        """What the index finds; None where comparing all is better, or what it found is not enough to tell."""
        query = nearest.from_index(self._tables, embedding, where, options.limit)
        if query is None or not self._runner.read(nearest.more_than(self._tables, nearest.INDEXED_FROM, where)):
            return None
        hits = _ranked(embedding, self._rows(query, embeddings=True), options)
        # Zero vectors, whose similarity is 0, are in no index.
        return hits if len(hits) == options.limit and hits[-1].similarity > 0 else None

    def _holding(self, words: Sequence[str], options: SearchOptions) -> builtins.list[MemoryEntry]:
        known = [word for word in words if is_indexed(word)]
        if not known:
            return []
        where = condition_of(self._tables, options.scope, options.filter)
        query = (
            "SELECT {{columns}} FROM {text} CROSS JOIN {memories} AS m ON m.seq = {text}.rowid "
            "WHERE {text} MATCH ? AND {where} ORDER BY bm25({text}, 0.0, 1.0), m.id LIMIT ?"
        )
        parameters = (match_of(options.scope, known), *where.parameters, max(5 * options.limit, 50))
        sql = self._tables.sql(query, *parameters, where=where.text)
        return [_entry(row) for row in self._rows(sql, embeddings=options.include_embeddings)]

    def _frequencies(self, scope: Scope, words: Sequence[str], now: datetime) -> dict[str, int]:
        where = condition_of(self._tables, scope, MemoryFilter(now=now))
        query = (
            "(SELECT count(*) FROM {text} CROSS JOIN {memories} AS m ON m.seq = {text}.rowid "
            "WHERE {text} MATCH ? AND {where})"
        )
        found = dict.fromkeys(words, 0)
        known = [word for word in found if is_indexed(word)]
        for start in range(0, len(known), _WORDS_AT_ONCE):
            some = known[start : start + _WORDS_AT_ONCE]
            counts = [
                self._tables.sql(query, match_of(scope, [each]), *where.parameters, where=where.text) for each in some
            ]
            parameters = tuple(value for each in counts for value in each.parameters)
            [row] = self._runner.read(Sql(f"SELECT {', '.join(each.text for each in counts)}", parameters))
            found.update(zip(some, row, strict=True))
        return found

    def _history(self, tenant: str, id: str) -> builtins.list[MemoryEntry]:
        query = (
            "SELECT h.seq, h.entry, NULL FROM {memories} AS m JOIN {history} AS h ON h.seq = m.seq "
            "WHERE m.tenant = ? AND m.id = ? ORDER BY h.number"
        )
        return [_entry(row) for row in self._runner.read(self._tables.sql(query, tenant, id))]

    def _rows(self, sql: Sql, *, embeddings: bool) -> builtins.list[Row]:
        """Version, entry and vector of what the statement finds; in portions if the server gives no answer so large."""
        wanted = f"m.version, m.entry, {'m.embedding' if embeddings else 'NULL'}"
        try:
            return self._runner.read(_with_columns(sql, wanted))
        except Failed as error:
            if not error.is_too_large:
                raise
        seqs = [seq for (seq,) in self._runner.read(_with_columns(sql, "m.seq"))]
        found = {seq: tuple(row) for seq, *row in self._by_seq(seqs, wanted)}
        return [found[seq] for seq in seqs if seq in found]  # one may have been deleted meanwhile

    def _by_seq(self, seqs: Sequence[int], wanted: str) -> builtins.list[Row]:
        query = "SELECT m.seq, {wanted} FROM {memories} AS m WHERE m.seq IN (SELECT value FROM json_each(?))"
        try:
            return self._runner.read(self._tables.sql(query, json_list(seqs), wanted=wanted))
        except Failed as error:
            if not error.is_too_large or len(seqs) <= 1:
                raise
        half = len(seqs) // 2
        return self._by_seq(seqs[:half], wanted) + self._by_seq(seqs[half:], wanted)


def _with_columns(sql: Sql, columns: str) -> Sql:
    return Sql(sql.text.replace("{columns}", columns, 1), sql.parameters)


def _entry(row: Row) -> MemoryEntry:
    _, text, embedding = row
    try:
        return entry_of_text(text, embedding)
    except UNREADABLE:
        raise damaged("a memory cannot be read") from None


def _ranked(embedding: Vector, rows: Iterable[Row], options: SearchOptions) -> builtins.list[SearchHit]:
    pool = [_entry(row) for row in rows]
    return rank_by_closeness(embedding, pool, options.limit, include_embeddings=options.include_embeddings)

"""A commit as statements: what must still hold, and what is written if it does."""

from __future__ import annotations

import json
import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from lamina.adapters._shared.directions import direction
from lamina.adapters._shared.entry_text import pack, text_of_entry
from lamina.adapters._shared.records import Change, Commit
from lamina.adapters._shared.where_sql import Sql, json_list
from lamina.adapters._shared.word_ranking import distinct_terms
from lamina.adapters.turso.tables import Tables
from lamina.adapters.turso.words import places
from lamina.domain.instants import to_micros
from lamina.domain.memory import MemoryEntry
from lamina.errors import InvalidInput
from lamina.ports.memory_adapter import HISTORY_KEPT

__all__ = ["changes_of", "guard_of", "lengths_of"]

MAX_DIMENSIONS: Final = 65_536
_COLUMNS: Final = (
    "seq, tenant, id, version, owner, namespace, layer, digest, created_at, updated_at, expires_at, relevance, "
    "confidence, dimensions, tags, metadata, entry, embedding"
)
_VALUES: Final = 30_000
"""Below the number of values that one statement of SQLite may hold."""


def guard_of(tables: Tables, commit: Commit) -> Sql:
    """A statement that fails if anything that the commit names has another version than was read."""
    entries = [(each.id, None if each.old is None else each.old.version) for each in commit.changes]
    controls = [(each.key, None if each.old is None else each.old.version) for each in commit.controls]
    differs = (
        "EXISTS (SELECT 1 FROM json_each(?) AS e LEFT JOIN {table} AS t ON t.tenant = ? AND t.{name} = e.value ->> 0 "
        "WHERE t.version IS NOT e.value ->> 1)"
    )
    of_entries = differs.replace("{table}", "{memories}").replace("{name}", "id")
    of_controls = differs.replace("{table}", "{controls}").replace("{name}", "key")
    return tables.sql(
        f"SELECT json(CASE WHEN {of_entries} OR {of_controls} THEN '' ELSE 'null' END)",
        json.dumps(entries),
        commit.tenant,
        json.dumps(controls),
        commit.tenant,
    )


def lengths_of(commit: Commit) -> set[int]:
    """How long the vectors are that the commit writes.

    Raises:
        InvalidInput: one is longer than a column of vectors may be.
    """
    news = (each.new for each in commit.changes)
    lengths = {len(new.embedding) for new in news if new is not None and new.embedding is not None}
    if max(lengths, default=0) > MAX_DIMENSIONS:
        problem = f"has {max(lengths)} dimensions, and libSQL takes at most {MAX_DIMENSIONS}"
        raise InvalidInput("embedding", problem, "Use a model with shorter vectors.")
    return lengths


def changes_of(tables: Tables, commit: Commit) -> Iterator[Sql]:
    """The statements that make the changes; every row that they write gets one version, which no other write has."""
    version = secrets.randbits(63)
    yield from _removals(tables, commit.changes)
    news = [each.new for each in commit.changes if each.new is not None]
    yield from _inserts(f"{{memories}} ({_COLUMNS})", [_row(entry, version) for entry in news], tables)
    told = [each.new for each in commit.changes if each.new is not None and _is_told_anew(each)]
    texts = [(new.seq, places(new), " ".join(distinct_terms(new.content))) for new in told]
    yield from _inserts("{text} (rowid, place, terms)", texts, tables)
    yield from _vectors(tables, commit.changes)
    yield from _past(tables, commit.changes)
    written = [(commit.tenant, each.key, each.value, version) for each in commit.controls if each.value is not None]
    yield from _inserts("{controls} (tenant, key, value, version)", written, tables, verb="INSERT OR REPLACE")


def _removals(tables: Tables, changes: Sequence[Change]) -> Iterator[Sql]:
    """Out goes all that is written anew, and what belongs to it as far as that is."""
    chosen: dict[str, list[int]] = defaultdict(list)
    for each in changes:
        if each.old is None:
            continue
        old = each.old.entry
        chosen["{memories} WHERE seq"].append(old.seq)
        if each.forgets:
            chosen["{history} WHERE seq"].append(old.seq)
        if _is_told_anew(each):
            chosen["{text} WHERE rowid"].append(old.seq)
        if old.embedding is not None and _is_placed_anew(each):
            chosen[f"{tables.vectors(len(old.embedding))} WHERE seq"].append(old.seq)
    for start, seqs in chosen.items():
        yield tables.sql(f"DELETE FROM {start} IN (SELECT value FROM json_each(?))", json_list(seqs))  # noqa: S608


def _vectors(tables: Tables, changes: Sequence[Change]) -> Iterator[Sql]:
    """Zero vectors have no direction, and stand in no table."""
    rows: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for each in changes:
        if each.new is not None and each.new.embedding is not None and _is_placed_anew(each):
            towards = direction(each.new.embedding)
            if towards is not None:
                rows[len(towards)].append((each.new.seq, pack(towards)))
    for length, some in rows.items():
        yield from _inserts(f"{tables.vectors(length)} (seq, direction)", some, tables)


def _past(tables: Tables, changes: Sequence[Change]) -> Iterator[Sql]:
    rows = [(each.new.seq, text_of_entry(past)) for each in changes if each.new is not None for past in each.past]
    yield from _inserts("{history} (seq, entry)", rows, tables)
    if rows:
        trim = (
            "DELETE FROM {history} WHERE number IN (SELECT number FROM ("
            "SELECT number, row_number() OVER (PARTITION BY seq ORDER BY number DESC) AS place FROM {history} "
            "WHERE seq IN (SELECT value FROM json_each(?))) WHERE place > ?)"
        )
        yield tables.sql(trim, json_list(dict.fromkeys(seq for seq, _ in rows)), HISTORY_KEPT)


def _is_told_anew(change: Change) -> bool:
    old, new = change.old, change.new
    if old is None or new is None or old.entry.seq != new.seq:
        return True
    return old.entry.content != new.content or places(old.entry) != places(new)


def _is_placed_anew(change: Change) -> bool:
    old, new = change.old, change.new
    if old is None or new is None or old.entry.seq != new.seq:
        return True
    return old.entry.embedding is not new.embedding


def _row(entry: MemoryEntry, version: int) -> tuple[Any, ...]:
    return (
        entry.seq,
        entry.tenant,
        entry.id,
        version,
        entry.owner,
        entry.namespace,
        entry.layer.value,
        entry.digest,
        to_micros(entry.created_at),
        to_micros(entry.updated_at),
        None if entry.expires_at is None else to_micros(entry.expires_at),
        float(entry.relevance),
        float(entry.confidence),
        None if entry.embedding is None else len(entry.embedding),
        json.dumps(entry.tags, ensure_ascii=False),
        json.dumps(entry.metadata, ensure_ascii=False),
        text_of_entry(entry),
        None if entry.embedding is None else pack(entry.embedding),
    )


def _inserts(target: str, rows: Iterable[tuple[Any, ...]], tables: Tables, *, verb: str = "INSERT") -> Iterator[Sql]:
    left = iter(rows)
    while first := next(left, None):
        some = [first, *islice(left, _VALUES // len(first) - 1)]
        marks = f"({', '.join('?' * len(first))})"
        values = [value for row in some for value in row]
        yield tables.sql(f"{verb} INTO {target} VALUES {', '.join([marks] * len(some))}", *values)

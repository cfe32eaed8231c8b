"""What changes the memories of one tenant, inside one transaction.

Whoever writes locks the tenant's row first: writers of a tenant take turns until they have committed, across
processes too. So what is looked up before a write still holds when it is written, `seq` grows in the order in
which entries become visible, and all of a tenant's vectors have one length. Counting accesses needs no turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from lamina.adapters._shared.draft import Draft
from lamina.adapters._shared.entry_text import pack, text_of_entry
from lamina.adapters._shared.records import Change
from lamina.adapters.postgres.arrays import reals_of
from lamina.adapters.postgres.conditions import within
from lamina.adapters.postgres.inserting import COPIED_FROM, copy_many, insert_few
from lamina.adapters.postgres.reading import Rows, ask_for, ask_for_alike, ask_for_meta, possible, stored_in
from lamina.adapters.postgres.rows import COLUMNS, values_of, words_of
from lamina.adapters.postgres.tables import Collection
from lamina.databases.postgres.failures import damaged
from lamina.domain.memory import MemoryEntry
from lamina.domain.scope import Scope
from lamina.errors import EmbeddingDimensionError
from lamina.ports.memory_adapter import HISTORY_KEPT, check_meta_value

__all__ = ["Locked", "change", "drop_embeddings", "save_meta", "touch"]

T = TypeVar("T")

_SAVE_META: Final = (
    "INSERT INTO {meta} (tenant, key, value, saved_at) SELECT %s, unnest(%s::text[]), %s, %s"
    " ON CONFLICT (tenant, key) DO UPDATE SET value = excluded.value, saved_at = excluded.saved_at"
)
_ASSIGNED: Final = ", ".join(f"{name} = %s{'::jsonb' if name == 'metadata' else ''}" for name in COLUMNS)


@dataclass(slots=True)
class Locked:
    """A tenant's row, which is this transaction's until it ends."""

    key: int
    last_seq: int
    dimensions: int | None


def lock(collection: Collection, ask: Callable[[], T]) -> tuple[Locked, T]:
    """Take the tenant's turn to write, and ask what is to be known then, in one round trip.

    The tenant is made if there is none; then `ask` is called again.
    """
    query = "SELECT key, last_seq, dimensions FROM {tenants} WHERE name = %s FOR NO KEY UPDATE"
    add = "INSERT INTO {tenants} (name) VALUES (%s) ON CONFLICT (name) DO NOTHING"
    for is_missing in (False, True):
        with collection.together():
            if is_missing:
                collection.execute(add, (collection.tenant,))
            locking = collection.execute(query, (collection.tenant,))
            asked = ask()
        row = locking.fetchone()
        if row is not None:
            return Locked(*row), asked
    raise damaged("a tenant that was added is not there")


def change(
    collection: Collection,
    ids: Sequence[str],
    work: Callable[[Draft], T],
    *,
    expected: Mapping[str, str | None] | None = None,
    alike: Sequence[MemoryEntry] = (),
    embeddings: bool = True,
) -> T:
    """Have a draft of these entries worked out, and write what becomes of them.

    Without `embeddings` the vectors of those that are stored are not looked at, and stay.
    """
    locked, (meta, stored, like) = lock(
        collection,
        lambda: (
            ask_for_meta(collection, expected or ()),
            ask_for(collection, ids, embeddings=embeddings, locks=True),
            ask_for_alike(collection, alike),
        ),
    )
    _expect(expected or {}, meta)
    draft = Draft(stored_in(collection, stored), stored_in(collection, like))
    outcome = work(draft)
    _write(collection, locked, draft.changes(locked.last_seq + 1))
    return outcome


def touch(collection: Collection, scope: Scope, ids: Sequence[str], now: datetime) -> None:
    """As `MemoryAdapter.touch`: in one statement, which locks the rows in order and then counts."""
    condition = within(scope)
    counted = dict.fromkeys(possible(ids), 0)
    for id in ids:
        if id in counted:
            counted[id] += 1
    statement = (
        "WITH read AS (SELECT m.tenant, m.seq, asked.times FROM {memories} AS m"
        " JOIN unnest(%s::text[], %s::bigint[]) AS asked (id, times) ON m.id = asked.id"
        " WHERE {condition} ORDER BY m.seq FOR NO KEY UPDATE OF m)"
        " UPDATE {memories} AS m SET access_count = m.access_count + read.times, last_accessed_at = %s"
        " FROM read WHERE m.tenant = read.tenant AND m.seq = read.seq"
    )
    parameters = (list(counted), list(counted.values()), *condition.parameters, now)
    collection.execute(statement, parameters, condition=condition.text)


def drop_embeddings(collection: Collection, scope: Scope) -> int:
    """As `MemoryAdapter.drop_embeddings`."""
    condition = within(scope)
    statement = (
        "DELETE FROM {vectors} AS v USING {memories} AS m WHERE v.tenant = m.tenant AND v.seq = m.seq AND {condition}"
    )
    _, deleting = lock(
        collection, lambda: collection.execute(statement, condition.parameters, condition=condition.text)
    )
    return deleting.rowcount


def _expect(expected: Mapping[str, str | None], meta: Rows) -> None:
    found: dict[str, str] = dict(meta)
    for key, value in expected.items():
        check_meta_value(key, found.get(key), value)


def save_meta(
    collection: Collection, key: str, value: str, *, expected: Mapping[str, str | None], now: datetime
) -> None:
    """Keep the text, which passed `check_meta`.

    Raises:
        Conflict: one of the keys that are `expected` has another value.
    """
    locked, meta = lock(collection, lambda: ask_for_meta(collection, expected))
    _expect(expected, meta)
    collection.execute(_SAVE_META, (locked.key, [key], value, now))


def save_meta_many(collection: Collection, keys: Sequence[str], value: str, *, now: datetime) -> None:
    """Keep the text, which passed `check_meta`, under each of the keys."""
    locked, _ = lock(collection, lambda: ask_for_meta(collection, {}))
    collection.execute(_SAVE_META, (locked.key, list(dict.fromkeys(keys)), value, now))


def _write(collection: Collection, locked: Locked, changes: Sequence[Change]) -> None:
    dimensions = _check_dimensions(collection, locked, changes)
    gone = [each.old.entry.seq for each in changes if each.old is not None and not _stays(each)]
    new = [each.new for each in changes if each.new is not None and not _stays(each)]
    with collection.together():
        if gone:
            query = "DELETE FROM {memories} WHERE tenant = %s AND seq = ANY(%s::bigint[])"
            collection.execute(query, (locked.key, gone))
        _update(collection, locked, [each for each in changes if _stays(each)])
        if new or dimensions != locked.dimensions:
            query = "UPDATE {tenants} SET last_seq = %s, dimensions = %s WHERE key = %s"
            collection.execute(query, (locked.last_seq + len(new), dimensions, locked.key))
        if len(new) < COPIED_FROM:
            insert_few(collection, locked.key, new)
            _remember(collection, locked, changes)
    if len(new) >= COPIED_FROM:
        copy_many(collection, locked.key, new)
        _remember(collection, locked, changes)


def _stays(change: Change) -> bool:
    """Whether the entry is changed in its row."""
    return change.old is not None and change.new is not None and change.new.seq == change.old.entry.seq


def _update(collection: Collection, locked: Locked, changes: Sequence[Change]) -> None:
    rows, words, vectors, bare = [], [], [], []
    for each in changes:
        if each.old is None or each.new is None:
            continue
        place = (locked.key, each.new.seq)
        rows.append((*values_of(each.new), *place))
        if each.new.content != each.old.entry.content:
            words.append((words_of(each.new), *place))
        if not _has_new_vector(each):
            continue
        if each.new.embedding is None:
            bare.append(each.new.seq)
        else:
            vectors.append((*place, len(each.new.embedding), reals_of(each.new.embedding)))
    session = collection.session
    session.execute_many("UPDATE {memories} SET {assigned} WHERE tenant = %s AND seq = %s", rows, assigned=_ASSIGNED)
    session.execute_many("UPDATE {words} SET words = %s WHERE tenant = %s AND seq = %s", words)
    if bare:
        query = "DELETE FROM {vectors} WHERE tenant = %s AND seq = ANY(%s::bigint[])"
        collection.execute(query, (locked.key, bare))
    session.execute_many(
        "INSERT INTO {vectors} (tenant, seq, dimensions, exact) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (tenant, seq) DO UPDATE SET dimensions = excluded.dimensions, exact = excluded.exact",
        vectors,
    )


def _remember(collection: Collection, locked: Locked, changes: Sequence[Change]) -> None:
    """Keep what the entries were, and of what they were before the latest versions."""
    grown = [each.new.seq for each in changes if each.new is not None and each.past]
    rows = [
        (locked.key, each.new.seq, version.revision, text_of_entry(version.replace(seq=each.new.seq)))
        for each in changes
        if each.new is not None
        for version in each.past
    ]
    if not rows:
        return
    add = "INSERT INTO {history} (tenant, seq, revision, entry) VALUES (%s, %s, %s, %s)"
    collection.session.execute_many(add, rows)
    trim = (
        "DELETE FROM {history} AS h USING unnest(%s::bigint[]) AS grown (seq) WHERE h.tenant = %s AND h.seq = grown.seq"
        " AND h.revision <= (SELECT last.revision FROM {history} AS last"
        " WHERE last.tenant = %s AND last.seq = grown.seq ORDER BY last.revision DESC LIMIT 1 OFFSET %s)"
    )
    collection.execute(trim, (grown, locked.key, locked.key, HISTORY_KEPT))


def _check_dimensions(collection: Collection, locked: Locked, changes: Sequence[Change]) -> int | None:
    """How long the tenant's vectors are after these changes.

    Raises:
        EmbeddingDimensionError: a new vector has another length than those that are there.
    """
    lengths = [
        len(each.new.embedding)
        for each in changes
        if each.new is not None and each.new.embedding is not None and _has_new_vector(each)
    ]
    if not lengths:
        return locked.dimensions
    expected = locked.dimensions or lengths[0]
    if any(length != expected for length in lengths) and locked.dimensions is not None:
        query = "SELECT FROM {vectors} WHERE tenant = %s LIMIT 1"
        if not collection.execute(query, (locked.key,)).rowcount:
            expected = lengths[0]  # those that had the former length are gone
    for length in lengths:
        if length != expected:
            raise EmbeddingDimensionError(expected, length)
    return expected


def _has_new_vector(change: Change) -> bool:
    new = None if change.new is None else change.new.embedding
    old = None if change.old is None or not _stays(change) else change.old.entry.embedding
    if new is old:
        return False
    return new is None or old is None or pack(new) != pack(old)

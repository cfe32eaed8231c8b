"""Commits: conditional writes of single documents, in one transaction where the server has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from bson import ObjectId
from bson.binary import Binary
from bson.timestamp import Timestamp
from pymongo import DeleteOne, InsertOne, MongoClient, ReplaceOne, UpdateOne
from pymongo.client_session import ClientSession
from pymongo.collection import Collection
from pymongo.errors import BulkWriteError, DuplicateKeyError, PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import Primary
from pymongo.write_concern import WriteConcern

from lamina.adapters._shared.patience import attempts
from lamina.adapters._shared.records import Change, Commit, ControlChange, Stale
from lamina.adapters.mongodb.documents import changed_fields, id_of, past_of, removal_date
from lamina.adapters.mongodb.failures import BACKEND
from lamina.errors import AdapterUnavailable
from lamina.ports.memory_adapter import HISTORY_KEPT

__all__ = ["Collections", "in_transaction", "write_commit"]

Document = dict[str, Any]

DURABLE: Final = WriteConcern("majority", j=True)
SNAPSHOT: Final = ReadConcern("snapshot")
_BATCH: Final = 1_000
_DUPLICATE: Final = 11000
_UNKNOWN_COMMIT: Final = "UnknownTransactionCommitResult"
_TRANSIENT: Final = "TransientTransactionError"


class Collections(NamedTuple):
    """What one adapter's memories lie in; a name of a collection of ours holds no dot, so none is another's."""

    memories: Collection[Document]
    history: Collection[Document]
    controls: Collection[Document]


def write_commit(collections: Collections, commit: Commit, session: ClientSession | None) -> None:
    """Write all of it, if each document still is what was read; without a session, one after the other.

    Raises:
        Stale: one is not; in a session nothing of it may be kept then.
    """
    try:
        for control in commit.controls:
            _write_control(collections.controls, commit.tenant, control, session)
        _keep_past(collections.history, commit, session)
        _write_entries(collections.memories, commit, session)
        _drop_past(collections.history, commit, session)
    except DuplicateKeyError:
        raise Stale from None
    except BulkWriteError as error:
        if any(each.get("code") == _DUPLICATE for each in error.details.get("writeErrors", ())):
            raise Stale from None
        raise


def in_transaction(client: MongoClient[Document], work: Callable[[ClientSession], None], patience: float) -> None:
    """Do the work in a transaction, and commit it; so many seconds are spent on a commit whose answer is lost.

    Raises:
        Stale: others' writes, or an election, were in the way, and nothing was written.
        AdapterUnavailable: whether it was kept could not be found out.
    """
    with client.start_session() as session:
        try:
            session.start_transaction(read_concern=SNAPSHOT, write_concern=DURABLE, read_preference=Primary())
            work(session)
            _commit_until_known(session, patience)
        except PyMongoError as error:
            if error.has_error_label(_TRANSIENT) and not error.timeout:  # which is all that a call may take
                raise Stale from error
            raise
        finally:
            if session.in_transaction:
                session.abort_transaction()


def _commit_until_known(session: ClientSession, patience: float) -> None:
    """Ask again while the answer is lost: committing twice is committing once.

    https://www.mongodb.com/docs/manual/core/transactions-in-applications/
    """
    lost: PyMongoError | None = None
    for _ in attempts(patience, first=0.05, longest=0.05):
        try:
            session.commit_transaction()
        except PyMongoError as error:
            if error.has_error_label(_UNKNOWN_COMMIT):
                lost = error
                continue
            if lost is None:
                raise
            lost = error
            break
        return
    # It may have been kept, so it must not be worked out anew.
    problem = f"the answer to a commit was lost: {type(lost).__name__}"
    remedy = "Whether it was kept is not known; a store repeated with the same ids adds nothing twice."
    raise AdapterUnavailable(BACKEND, problem, remedy) from lost


def _write_control(
    controls: Collection[Document], tenant: str, change: ControlChange, session: ClientSession | None
) -> None:
    """A control that stays is written too: so the transactions that change it conflict with this one.

    One that must not be there is a document without a value, which the first to give it a value meets.
    """
    at = {"_id": id_of(tenant, change.key)}
    if change.value is not None:
        written: Document = {"$set": {"key": change.key, "value": change.value, "mark": ObjectId()}}
    else:
        written = {"$inc": {"checks": 1}}
    if change.old is not None:
        if controls.update_one({**at, "mark": change.old.version}, written, session=session).matched_count == 0:
            raise Stale
        return
    if change.value is None:
        written["$setOnInsert"] = {"mark": None}
    controls.update_one({**at, "value": None}, written, upsert=True, session=session)


def _write_entries(memories: Collection[Document], commit: Commit, session: ClientSession | None) -> None:
    if not commit.changes:
        return
    requests = [_request(each) for each in commit.changes]
    result = memories.bulk_write(requests, session=session)
    replaced = sum(each.old is not None and each.new is not None for each in commit.changes)
    deleted = sum(each.new is None for each in commit.changes)
    if (result.matched_count, result.deleted_count) != (replaced, deleted):
        raise Stale


def _request(change: Change) -> InsertOne[Document] | UpdateOne | DeleteOne:
    """What is written of one entry, on the condition that its mark still is the one that was read."""
    old = change.old
    if change.new is None:
        assert old is not None  # noqa: S101 - or there were nothing to change
        return DeleteOne({"_id": id_of(old.entry.tenant, change.id), "mark": old.version.mark})
    fields = {
        **changed_fields(change.new, None if old is None else old.entry),
        "mark": ObjectId(),
        "kept": _room(_kept(change)),
    }
    id = id_of(change.new.tenant, change.id)
    if old is None:  # the server fills in an empty timestamp: https://www.mongodb.com/docs/manual/reference/bson-types/
        return InsertOne({"_id": id, **fields, "written": Timestamp(0, 0)})
    at = {"_id": id, "mark": old.version.mark}
    return UpdateOne(at, {"$set": fields, "$currentDate": {"written": {"$type": "timestamp"}}})


def _keep_past(history: Collection[Document], commit: Commit, session: ClientSession | None) -> None:
    """Add former versions: before the entry, so that none is missing where there is no transaction."""
    written = [each for each in commit.changes if each.new is not None]
    # What the server removed by itself may have left some of its history.
    _forget(history, [id_of(commit.tenant, each.id) for each in written if each.forgets or each.old is None], session)
    past = [past_of(entry, removal_date(each.new)) for each in written if each.new for entry in each.past]
    if past:
        history.bulk_write([ReplaceOne({"_id": each["_id"]}, each, upsert=True) for each in past], session=session)


def _drop_past(history: Collection[Document], commit: Commit, session: ClientSession | None) -> None:
    """Let the history of each entry go when the entry does, and no longer than it has to be."""
    _forget(history, [id_of(commit.tenant, each.id) for each in commit.changes if each.new is None], session)
    for each in commit.changes:
        if each.new is None or each.old is None or each.forgets:
            continue
        of, kept = id_of(commit.tenant, each.id), _kept(each)
        if kept and each.new.expires_at != each.old.entry.expires_at:
            history.update_many({"of": of}, {"$set": {"expires_on": removal_date(each.new)}}, session=session)
        if kept > _room(kept):
            old = history.find({"of": of}, {"_id": 1}, session=session).sort("revision", -1).skip(HISTORY_KEPT)
            history.delete_many({"_id": {"$in": [one["_id"] for one in old]}}, session=session)


def _forget(history: Collection[Document], ids: Sequence[Binary], session: ClientSession | None) -> None:
    for start in range(0, len(ids), _BATCH):
        history.delete_many({"of": {"$in": ids[start : start + _BATCH]}}, session=session)


def _kept(change: Change) -> int:
    """How many versions the entry's history has with this change."""
    before = 0 if change.old is None or change.forgets else change.old.version.kept
    return int(before) + len(change.past)


def _room(kept: int) -> int:
    """How many versions stay of so many: they are cut back only now and then, so that most writes need not look."""
    return kept if kept <= 2 * HISTORY_KEPT else HISTORY_KEPT

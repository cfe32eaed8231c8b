"""A commit as one transaction: its actions, its size, and what its failure means."""

from __future__ import annotations

import secrets
from typing import Any, Final

from botocore.exceptions import ClientError

from lamina.adapters._shared.patience import attempts
from lamina.adapters._shared.records import Change, Commit, ControlChange, Stale, Stored, TooLarge
from lamina.adapters.dynamodb.failures import NAME, code_of, is_for_now
from lamina.adapters.dynamodb.items import MAX_ITEM, Mark, check_size, record, rows, size_of, version
from lamina.adapters.dynamodb.keys import Item, key_of, place
from lamina.domain.memory import MemoryEntry
from lamina.errors import AdapterError, AdapterUnavailable, InvalidInput
from lamina.ports.memory_adapter import HISTORY_KEPT

__all__ = ["Transaction"]

MAX_ACTIONS: Final = 100
MAX_BYTES: Final = 4_000_000
"""DynamoDB's quotas for a transaction; the bytes are 4 MB."""

_PATIENCE: Final = 10.0
_IF_ABSENT: Final = {"ConditionExpression": "attribute_not_exists(#pk)", "ExpressionAttributeNames": {"#pk": "pk"}}


class Transaction:
    """The actions that write a commit, at most one for each item, each of them under its condition."""

    def __init__(self, table: str, commit: Commit) -> None:
        self._table = table
        self._actions: list[tuple[str, dict[str, Any]]] = []
        self._bytes = 0
        for change in commit.changes:
            self._change(commit.tenant, change)
        for control in commit.controls:
            self._control(commit.tenant, control)
        if len(self._actions) > MAX_ACTIONS or self._bytes > MAX_BYTES:
            raise TooLarge

    def send(self, client: Any) -> None:
        """Write all of it or nothing.

        Its token makes it happen once, however often the client sends it because an answer was lost.

        Raises:
            Stale: what it was worked out from has changed.
        """
        actions = [{verb: {"TableName": self._table, **arguments}} for verb, arguments in self._actions]
        token = secrets.token_hex(16)
        if not actions:
            return
        for _ in attempts(_PATIENCE, first=0.1, longest=0.5):
            try:
                client.transact_write_items(TransactItems=actions, ClientRequestToken=token)
            except ClientError as error:
                if code_of(error) == "TransactionCanceledException":
                    raise _cancelled(error) from None
                if code_of(error) != "TransactionInProgressException":  # the first sending of it is still at work
                    raise
            else:
                return
        problem = "a change that was sent twice is still being made the first time"
        raise AdapterUnavailable(NAME, problem, "Try again; to store with the same ids again adds nothing twice.")

    def _change(self, tenant: str, change: Change) -> None:
        mark = change.old.version if change.old is not None else Mark("", 0)
        condition = _IF_ABSENT if change.old is None else _if_version(mark.version)
        past = 0 if change.forgets else mark.past
        new = change.new
        if new is None:
            self._delete(key_of(place("r", tenant, change.id)), condition)
        else:
            made = record(new, Mark(secrets.token_hex(8), past + len(change.past)))
            check_size(new, [made, *rows(new).values()])
            self._put(made, condition)
        self._rows(change.old, new)
        self._history(tenant, change, mark)

    def _rows(self, old: Stored | None, new: MemoryEntry | None) -> None:
        """What has changed of the rows about it."""
        before = {} if old is None else {_key(row): row for row in rows(old.entry).values()}
        after = {} if new is None else {_key(row): row for row in rows(new).values()}
        for key, row in after.items():
            if before.get(key) != row:
                self._put(row)
        for key, row in before.items():
            if key not in after:
                self._delete({"pk": row["pk"], "sk": row["sk"]})

    def _history(self, tenant: str, change: Change, mark: Mark) -> None:
        """What is new in it, what is beyond what is kept, and when it may go."""
        partition = place("h", tenant, change.id)
        past = 0 if change.forgets else mark.past
        still = () if change.new is None else _kept(past + len(change.past))
        written = {number: former for number, former in enumerate(change.past, past + 1) if number in still}
        stays = () if change.forgets else still
        for number in _kept(mark.past):
            if number not in stays and number not in written:
                self._delete(key_of(partition, number))
        if change.new is None:
            return
        for number, former in written.items():
            made = key_of(partition, number) | version(former)
            self._put(_expiring_as(made, change.new))
        if change.old is not None and change.old.entry.expires_at != change.new.expires_at:
            for number in (each for each in _kept(mark.past) if each in stays):
                self._expire(key_of(partition, number), _expiring_as({}, change.new))

    def _control(self, tenant: str, change: ControlChange) -> None:
        key = key_of(place("c", tenant, change.key))
        condition = _IF_ABSENT if change.old is None else _if_version(change.old.version)
        if change.value is None:
            self._actions.append(("ConditionCheck", {"Key": key, **condition}))
            return
        item = {**key, "value": {"S": change.value}, "version": {"S": secrets.token_hex(8)}}
        if size_of(item) > MAX_ITEM:
            problem = f"makes an item of {size_of(item)} bytes, and DynamoDB keeps at most {MAX_ITEM}"
            raise InvalidInput("value", problem, "Make it smaller.")
        self._put(item, condition)

    def _put(self, item: Item, condition: dict[str, Any] | None = None) -> None:
        self._bytes += size_of(item)
        self._actions.append(("Put", {"Item": item, **(condition or {})}))

    def _delete(self, key: Item, condition: dict[str, Any] | None = None) -> None:
        self._actions.append(("Delete", {"Key": key, **(condition or {})}))

    def _expire(self, key: Item, ttl: Item) -> None:
        update: dict[str, Any] = {"Key": key, "ExpressionAttributeNames": {"#ttl": "ttl"}}
        if ttl:
            update |= {"UpdateExpression": "SET #ttl = :ttl", "ExpressionAttributeValues": {":ttl": ttl["ttl"]}}
        else:
            update["UpdateExpression"] = "REMOVE #ttl"
        self._actions.append(("Update", update))


def _key(row: Item) -> tuple[str, str]:
    return row["pk"]["S"], row["sk"]["N"]


def _kept(past: int) -> range:
    """The numbers of the versions that are there when so many were ever made."""
    return range(max(1, past - HISTORY_KEPT + 1), past + 1)


def _expiring_as(item: Item, entry: MemoryEntry) -> Item:
    """The item, to go when the entry does: a history does not outlive its memory."""
    rest = {name: value for name, value in item.items() if name != "ttl"}
    return rest | {name: value for name, value in version(entry).items() if name == "ttl"}


def _if_version(version: str) -> dict[str, Any]:
    return {
        "ConditionExpression": "#version = :version",
        "ExpressionAttributeNames": {"#version": "version"},
        "ExpressionAttributeValues": {":version": {"S": version}},
    }


def _cancelled(error: ClientError) -> Exception:
    reasons = {each.get("Code", "None") for each in error.response.get("CancellationReasons", ())} - {"None"}
    if reasons & {"ConditionalCheckFailed", "TransactionConflict"}:
        return Stale()
    said = ", ".join(sorted(reasons)) or "no reason given"
    if any(is_for_now(each) for each in reasons):
        return AdapterUnavailable(NAME, f"a change was not taken for now ({said})", "Nothing was written. Try again.")
    return AdapterError(NAME, f"a change was refused ({said})", "Nothing was written.")

"""Memories in an Amazon DynamoDB table."""

from __future__ import annotations

import builtins
import dataclasses
import heapq
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from typing import Any, ClassVar, Final

from botocore.config import Config
from botocore.loaders import Loader, create_loader
from botocore.session import Session

from lamina.adapters._shared.options import DEFAULT_TABLE, checked_table, one_of
from lamina.adapters._shared.record_adapter import RecordAdapter
from lamina.adapters._shared.records import Commit, Control, Stored
from lamina.adapters._shared.threads import not_open
from lamina.adapters.dynamodb.expressions import Expression, gap_of
from lamina.adapters.dynamodb.failures import NAME, damaged, translated
from lamina.adapters.dynamodb.items import Mark, entry_of
from lamina.adapters.dynamodb.keys import Item, place
from lamina.adapters.dynamodb.options import Options
from lamina.adapters.dynamodb.table import Table
from lamina.adapters.dynamodb.transaction import Transaction
from lamina.domain.filters import Expiry, Filter, MemoryFilter
from lamina.domain.memory import Layer, MemoryEntry
from lamina.domain.scope import Scope
from lamina.ports.memory_adapter import Capability, ListOptions, Order

__all__ = ["DynamoDBAdapter"]

_NO_TIME: Final = datetime.max.replace(tzinfo=UTC)
_CHUNK: Final = 100
"""How many memories are read at once."""


class DynamoDBAdapter(RecordAdapter):
    """Memories in a table that is made when it is not there, and billed by the request.

    Args:
        url: The address of a server that is not Amazon's own, such as DynamoDB local.
        region: Amazon's region; None for what botocore finds by itself.
        table: The table's name; two adapters with different ones never see each other.
        access_key_id: With `secret_access_key` and, if there is one, `session_token`, the credentials;
            None for what botocore finds by itself, which is the better way.
        connect_timeout: Seconds to wait for a connection.
        timeout: Seconds to wait for an answer.
        retries: How often a request is sent again before it is given up; each is harmless to repeat.
        threads: How many requests run side by side.
        endpoint: Another name for `url`.
        table_name: Another name for `table`.

    Raises:
        ConfigError: an option is wrong.
    """

    name: ClassVar[str] = NAME
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.FILTER,
            Capability.COMPARE_AND_SET,
            Capability.EXPIRY,
            Capability.HISTORY,
            Capability.PERSISTENCE,
        }
    )
    group = 16  # of up to five items each, and their claims: a transaction has a hundred actions

    def __init__(
        self,
        url: str | None = None,
        *,
        region: str | None = None,
        table: str = DEFAULT_TABLE,
        access_key_id: str | None = None,
        secret_access_key: str | None = None,
        session_token: str | None = None,
        connect_timeout: float = 5,
        timeout: float = 20,
        retries: int = 4,
        threads: int = 8,
        endpoint: str | None = None,
        table_name: str | None = None,
    ) -> None:
        self._options = Options(
            table=checked_table(table, shortest=3, table_name=table_name),
            region=region,
            url=one_of("url", url, endpoint=endpoint),
            access_key_id=access_key_id,
            secret_access_key=secret_access_key,
            session_token=session_token,
            connect_timeout=connect_timeout,
            timeout=timeout,
            retries=retries,
            threads=threads,
        )
        super().__init__(threads=threads)
        self._client: Any = None

    def __repr__(self) -> str:
        """Where it is, without secrets."""
        return f"DynamoDBAdapter({self._options.place})"

    def filter_gap(self, where: Filter) -> str | None:
        return gap_of(where)

    # In a thread -------------------------------------------------------------------------------

    def _open(self) -> None:
        options = self._options
        session = Session()
        session.register_component("data_loader", _models())
        if options.access_key_id is not None:
            session.set_credentials(options.access_key_id, options.secret_access_key, options.session_token)
        self._client = session.create_client(
            "dynamodb",
            region_name=options.region,
            endpoint_url=options.url,
            config=Config(
                connect_timeout=options.connect_timeout,
                read_timeout=options.timeout,
                retries={"mode": "standard", "total_max_attempts": 1 + options.retries},
                max_pool_connections=options.threads,
            ),
        )
        self._table.ensure()

    def _shut(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _translated(self) -> AbstractContextManager[None]:
        return translated(self._options.place)

    @property
    def _table(self) -> Table:
        if self._client is None:
            raise not_open(self.name)
        return Table(self._client, self._options.table)

    def _load(self, tenant: str, ids: Sequence[str]) -> builtins.list[Stored]:
        found = self._table.load(place("r", tenant, id) for id in ids)
        return [_stored(item) for item in found.values()]

    def _load_controls(self, tenant: str, keys: Sequence[str]) -> dict[str, Control]:
        places = {place("c", tenant, key): key for key in keys}
        found = self._table.load(places)
        return {places[each]: Control(item["value"]["S"], item["version"]["S"]) for each, item in found.items()}

    def _commit(self, commit: Commit) -> None:
        Transaction(self._options.table, commit).send(self._client)

    def _reserve(self, number: int) -> int:
        return self._table.next_number(number)

    def _alike(self, scope: Scope, layer: Layer, digests: Sequence[str]) -> builtins.list[Stored]:
        ids = {row["id"]["S"]: None for digest in digests for row in self._rows_alike(scope, layer, digest)}
        found = self._load(scope.tenant, builtins.list(ids))
        wanted = [
            each
            for each in found
            if each.entry.layer is layer and each.entry.digest in digests and scope.admits(each.entry)
        ]
        return sorted(wanted, key=lambda each: each.entry.seq)

    def _rows_alike(self, scope: Scope, layer: Layer, digest: str) -> Iterator[Item]:
        if scope.owner is not None and scope.namespace is not None and not scope.include_shared:
            partition = place("a", scope.tenant, scope.owner, scope.namespace, layer.value, digest)
            yield from self._table.rows(partition, Expression(), attributes=["id"])
            return
        for partition, expression in _sources(scope, MemoryFilter(now=_NO_TIME, expiry=Expiry.ANY)):
            expression.same("layer", {"S": layer.value})
            expression.same("digest", {"S": digest})
            yield from self._table.rows(partition, expression, wanted=1_000, attributes=["id"])

    def _select(self, options: ListOptions) -> builtins.list[MemoryEntry]:
        wanted = options.offset + options.limit
        rows: Iterable[Item]
        if options.order is Order.RELEVANCE:
            rows = self._rows(options, 1_000, ["sk", "id", "relevance", "created"])
            rows = sorted(rows, key=_by_relevance)
        else:
            rows = self._rows(options, wanted, ["sk", "id"])
        skipped = options.offset
        if options.filter.expiry is Expiry.LIVE:  # each such row has its memory: what expired alone may be gone
            rows, skipped = islice(rows, skipped, None), 0
        return builtins.list(islice(self._entries(rows, options), skipped, skipped + options.limit))

    def _rows(self, options: ListOptions, wanted: int, attributes: Sequence[str]) -> Iterator[Item]:
        after = options.after or 0
        rows = [
            self._table.rows(partition, expression, after=after, wanted=wanted, attributes=attributes)
            for partition, expression in _sources(options.scope, options.filter)
        ]
        return heapq.merge(*rows, key=_seq) if len(rows) > 1 else rows[0]

    def _entries(self, rows: Iterable[Item], options: ListOptions) -> Iterator[MemoryEntry]:
        """The memories of the rows, those that are still what the row says.

        A row and its memory are read one after the other: what was deleted, or changed so that the filter
        does not admit it, in between, or was removed by DynamoDB on its expiry, is left out.
        """
        rows = iter(rows)
        size = min(options.limit, _CHUNK)
        while chunk := builtins.list(islice(rows, size)):
            size = _CHUNK
            tenant = options.scope.tenant
            places = [place("r", tenant, row["id"]["S"]) for row in chunk]
            found = self._table.load(places)
            for row, each in zip(chunk, places, strict=True):
                entry = entry_of(found[each]) if each in found else None
                if entry is not None and entry.seq == _seq(row) and options.filter.admits(options.scope, entry):
                    yield entry if options.include_embeddings else entry.replace(embedding=None)

    def _count(self, scope: Scope, filter: MemoryFilter) -> int:
        live = dataclasses.replace(filter, expiry=Expiry.LIVE)
        expired = dataclasses.replace(filter, expiry=Expiry.EXPIRED)
        number = 0
        if filter.expiry is not Expiry.EXPIRED:
            number += sum(self._table.count(partition, expression) for partition, expression in _sources(scope, live))
        if filter.expiry is not Expiry.LIVE:  # DynamoDB removes items one by one: only the memory itself counts
            options = ListOptions(scope=scope, filter=expired, limit=1)
            number += sum(1 for _ in self._entries(self._rows(options, 1_000, ["sk", "id"]), options))
        return number

    def _history(self, tenant: str, id: str) -> builtins.list[MemoryEntry]:
        found = self._table.rows(place("h", tenant, id), Expression())
        return [entry_of(item) for item in found if "entry" in item]  # without, it had gone when its expiry changed


@cache
def _models() -> Loader:
    """The descriptions of Amazon's services, which take longer to read than anything else of opening."""
    return create_loader()


def _stored(item: Item) -> Stored:
    entry = entry_of(item)
    try:
        mark = Mark(item["version"]["S"], int(item["past"]["N"]))
    except (KeyError, ValueError):
        raise damaged("an item of the table lacks what Lamina wrote beside the memory") from None
    return Stored(entry, mark)


def _sources(scope: Scope, filter: MemoryFilter) -> builtins.list[tuple[str, Expression]]:
    """The partitions that together have each row that the scope and the filter admit once, and what to ask there."""
    if scope.owner is None:
        places = [(place("t", scope.tenant), False)]
    else:
        places = [(place("o", scope.tenant, scope.owner), False)]
        if scope.include_shared:
            places.append((place("s", scope.tenant), True))
    sources = []
    for partition, of_others in places:
        expression = Expression()
        expression.admit(scope, filter, of_others=of_others)
        sources.append((partition, expression))
    return sources


def _seq(row: Item) -> int:
    return int(row["sk"]["N"])


def _by_relevance(row: Item) -> tuple[bytes, int, str]:
    falling = bytes(255 - each for each in row["relevance"]["B"])
    return falling, -int(row["created"]["N"]), row["id"]["S"]

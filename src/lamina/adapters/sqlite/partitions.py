"""Partitions: the (tenant, owner, namespace, layer) to which a memory belongs, as a small number.

A memory's key is its partition's number and a count in it: `partition << 32 | n`. So whatever is
keyed by it, rows, vectors and texts alike, lies together for one partition, and a scope is a few
ranges of keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from lamina.adapters._shared.where_sql import Sql, scope_sql
from lamina.adapters.sqlite.tables import Collection
from lamina.domain.memory import Layer
from lamina.domain.scope import Scope

__all__ = ["LAST", "Partition", "Reach", "bounds", "expected_dimensions", "partition_of", "resolve"]

LAST: Final = 0xFFFFFFFF
"""The greatest count in a partition."""

FEW: Final = 16
"""Up to so many partitions are read one range after the other; more are joined."""

MANY: Final = 4096
"""Up to so many partitions are known by their numbers."""


class Partition(NamedTuple):
    """What the file says of one."""

    id: int
    last: int
    """How many memories it ever held."""
    vectors: int
    dimensions: int
    state: int


@dataclass(frozen=True, slots=True)
class Reach:
    """The partitions that a scope admits: as a condition on `p`, and one by one."""

    condition: Sql
    partitions: tuple[Partition, ...] | None
    """By their numbers; None if they are too many to be told."""
    ids: tuple[int, ...] | None
    """Their numbers."""
    size: int | None = None
    """How many memories those ever held: at least as many as they hold."""

    @property
    def few(self) -> tuple[int, ...] | None:
        """Their numbers, if they are few."""
        return self.ids if self.ids is not None and len(self.ids) <= FEW else None

    @property
    def is_empty(self) -> bool:
        """Whether nothing can be in there."""
        return self.ids == ()


def partition_of(key: int) -> int:
    """The partition in whose range the key lies."""
    return key >> 32


def bounds(partition: int) -> tuple[int, int]:
    """The least and the greatest key of the partition."""
    return partition << 32, partition << 32 | LAST


def resolve(collection: Collection, scope: Scope, layers: frozenset[Layer] | None = None) -> Reach:
    """The partitions that the scope admits, of these layers or of all."""
    condition = scope_sql(scope, layers)
    query = "SELECT p.id, p.last, p.vectors, p.dimensions, p.state FROM {partitions} AS p WHERE {condition} LIMIT ?"
    parameters = (*condition.parameters, MANY + 1)
    rows = collection.execute(query, parameters, condition=condition.text).fetchall()
    if len(rows) > MANY:
        return Reach(condition, None, None)
    partitions = tuple(map(Partition._make, sorted(rows)))
    ids = tuple(each.id for each in partitions)
    if len(ids) <= FEW:
        condition = Sql(f"p.id IN ({', '.join('?' * len(ids))})", ids)
    return Reach(condition, partitions, ids, sum(each.last for each in partitions))


def expected_dimensions(collection: Collection, tenant: str) -> int | None:
    """How long the tenant's vectors are, or None if it has none."""
    query = "SELECT dimensions FROM {partitions} WHERE tenant = ? AND vectors > 0 LIMIT 1"
    row = collection.execute(query, (tenant,)).fetchone()
    return row[0] if row else None

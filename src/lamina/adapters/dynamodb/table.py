"""The table: made, recognised, and read, however many pages that takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from botocore.exceptions import ClientError

from lamina.adapters._shared.layout_version import made_by_newer
from lamina.adapters._shared.patience import attempts
from lamina.adapters.dynamodb.expressions import Expression
from lamina.adapters.dynamodb.failures import NAME, code_of, damaged
from lamina.adapters.dynamodb.keys import COUNTER, VERSION, Item, key_of
from lamina.errors import AdapterUnavailable

__all__ = ["Table"]

LAYOUT: Final = 1
"""The version of what `keys` and `items` say."""

_KEYS: Final = {"pk": ("HASH", "S"), "sk": ("RANGE", "N")}
_BATCH: Final = 100
"""Keys in one BatchGetItem: DynamoDB's quota."""
_PAGE: Final = range(100, 1_001)
"""Rows that one query looks at: enough for a filter to find some, and no more than are wanted."""
_PATIENCE: Final = 60.0
"""Seconds for a table to become active, and for a batch that is answered piece by piece."""


class Table:
    """One table of one account and region, through a client that threads share. Every read is strongly consistent."""

    def __init__(self, client: Any, name: str) -> None:
        self._client = client
        self.name = name

    # Its making --------------------------------------------------------------------------------

    def ensure(self) -> None:
        """Make the table if there is none, and see that it is one of ours.

        Raises:
            StoreDamaged: it has other keys, or was laid out by a newer Lamina.
        """
        if self._describe() is None:
            self._create()
        described = self._wait_until_active()
        types = {each["AttributeName"]: each["AttributeType"] for each in described["AttributeDefinitions"]}
        keys = {
            each["AttributeName"]: (each["KeyType"], types[each["AttributeName"]]) for each in described["KeySchema"]
        }
        if keys != _KEYS:
            raise damaged(f"the table {self.name!r} was not made by Lamina")
        self._expire()
        self._check_version()

    def _describe(self) -> Any:
        try:
            return self._client.describe_table(TableName=self.name)["Table"]
        except ClientError as error:
            if code_of(error) != "ResourceNotFoundException":
                raise
            return None

    def _create(self) -> None:
        try:
            self._client.create_table(
                TableName=self.name,
                BillingMode="PAY_PER_REQUEST",
                AttributeDefinitions=[{"AttributeName": n, "AttributeType": kind} for n, (_, kind) in _KEYS.items()],
                KeySchema=[{"AttributeName": name, "KeyType": role} for name, (role, _) in _KEYS.items()],
            )
        except ClientError as error:
            if code_of(error) != "ResourceInUseException":  # somebody else is making it just now
                raise

    def _wait_until_active(self) -> Any:
        for _ in attempts(_PATIENCE, first=0.2, longest=1.0):
            described = self._describe()
            if described is not None and described["TableStatus"] in {"ACTIVE", "UPDATING"}:
                return described
        problem = f"the table {self.name!r} did not become active"
        raise AdapterUnavailable(NAME, problem, "Wait for it, then try again.")

    def _expire(self) -> None:
        told = self._client.describe_time_to_live(TableName=self.name)["TimeToLiveDescription"]
        if told["TimeToLiveStatus"] in {"ENABLED", "ENABLING"}:
            if told.get("AttributeName", "ttl") != "ttl":
                raise damaged(f"the table {self.name!r} lets items expire by another attribute than `ttl`")
            return
        wanted = {"Enabled": True, "AttributeName": "ttl"}
        try:
            self._client.update_time_to_live(TableName=self.name, TimeToLiveSpecification=wanted)
        except ClientError:  # somebody else has just done so, or it failed
            told = self._client.describe_time_to_live(TableName=self.name)["TimeToLiveDescription"]
            if told["TimeToLiveStatus"] not in {"ENABLED", "ENABLING"}:
                raise

    def _check_version(self) -> None:
        item = self._get(VERSION)
        if item is None:
            self._client.put_item(TableName=self.name, Item={**VERSION, "version": {"N": str(LAYOUT)}})
            return
        version = int(item.get("version", {}).get("N", "0"))
        if version > LAYOUT:
            raise made_by_newer(NAME, f"the table {self.name!r}", version, LAYOUT)
        if version < 1:
            raise damaged(f"the table {self.name!r} does not say which layout it has")

    # Its reading -------------------------------------------------------------------------------

    def next_number(self, count: int) -> int:
        """The first of so many numbers that nobody else gets."""
        answer = self._client.update_item(
            TableName=self.name,
            Key=COUNTER,
            UpdateExpression="ADD #n :count",
            ExpressionAttributeNames={"#n": "last"},
            ExpressionAttributeValues={":count": {"N": str(count)}},
            ReturnValues="UPDATED_NEW",
        )
        return int(answer["Attributes"]["last"]["N"]) - count + 1

    def load(self, partitions: Iterable[str]) -> Mapping[str, Item]:
        """The items numbered 0 of these partitions, by partition; those that are not there are left out."""
        found: dict[str, Item] = {}
        wanted = [key_of(each) for each in dict.fromkeys(partitions)]
        for _ in attempts(_PATIENCE, first=0.05, longest=2.0):
            is_busy = False
            while wanted and not is_busy:
                asked, rest = wanted[:_BATCH], wanted[_BATCH:]
                request = {self.name: {"Keys": asked, "ConsistentRead": True}}
                answer = self._client.batch_get_item(RequestItems=request)
                found |= {item["pk"]["S"]: item for item in answer["Responses"].get(self.name, ())}
                left = answer.get("UnprocessedKeys", {}).get(self.name, {}).get("Keys", [])
                is_busy = len(left) == len(asked)  # nothing was answered
                wanted = [*left, *rest]
            if not wanted:
                return found
        raise AdapterUnavailable(NAME, f"the table {self.name!r} answers no more reads for now", "Try again.")

    def rows(
        self, partition: str, expression: Expression, *, after: int = 0, wanted: int = 1, attributes: Sequence[str] = ()
    ) -> Iterator[Item]:
        """Rows of a partition, in the order of their numbers, page by page as they are taken."""
        if expression.condition is False:
            return
        size = min(max(wanted, _PAGE.start), _PAGE.stop - 1)
        for page in self._pages(partition, expression, after=after, Limit=size, **_only(attributes)):
            yield from page["Items"]

    def count(self, partition: str, expression: Expression) -> int:
        """How many rows of a partition the expression admits."""
        if expression.condition is False:
            return 0
        return sum(page["Count"] for page in self._pages(partition, expression, after=0, Select="COUNT"))

    def _pages(self, partition: str, expression: Expression, *, after: int, **options: Any) -> Iterator[Any]:
        given = expression.arguments
        names = {"#P": "pk", "#S": "sk", **given.pop("ExpressionAttributeNames", {}), **options.pop("names", {})}
        bound = {":P": {"S": partition}, ":S": {"N": str(after)}}
        values = {**bound, **given.pop("ExpressionAttributeValues", {})}
        request = {
            "TableName": self.name,
            "ConsistentRead": True,
            "KeyConditionExpression": "#P = :P AND #S > :S",
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
            **given,
            **options,
        }
        while True:
            page = self._client.query(**request)
            yield page
            if "LastEvaluatedKey" not in page:
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _get(self, key: Item) -> Any:
        return self._client.get_item(TableName=self.name, Key=key, ConsistentRead=True).get("Item")


def _only(attributes: Sequence[str]) -> dict[str, Any]:
    if not attributes:
        return {}
    names = {f"#A{number}": name for number, name in enumerate(attributes)}
    return {"names": names, "ProjectionExpression": ",".join(names)}

"""Amazon DynamoDB: a table that is paid by the request, with native expiry and no search of its own."""

from __future__ import annotations

from lamina.errors import MissingExtra

try:
    import botocore as _botocore  # noqa: F401 - every module here needs it: what is missing is said once, at the door
except ImportError as error:
    if error.name is not None and error.name.partition(".")[0] not in {"botocore", "jmespath"}:
        raise
    raise MissingExtra("DynamoDB", "dynamodb") from error

from lamina.adapters.dynamodb.adapter import DynamoDBAdapter

__all__ = ["DynamoDBAdapter"]

"""Documents through Firestore's own protocol: read, queried, counted, committed under conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import google.auth
import grpc
from google.api_core import exceptions
from google.api_core.retry import Retry, if_exception_type
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore_v1.services.firestore import FirestoreClient
from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcTransport
from google.cloud.firestore_v1.types import firestore, query, write

from lamina.adapters._shared.records import Stale
from lamina.adapters.firestore.options import Options
from lamina.adapters.firestore.values import fields_of, values_of
from lamina.errors import ConfigError

__all__ = ["Documents", "Found", "Write", "as_message", "joined", "select"]

_SCOPE: Final = "https://www.googleapis.com/auth/datastore"
_Joined: Final[Any] = query.StructuredQuery.CompositeFilter.Operator
_LARGEST: Final = 64 * 1024 * 1024
"""Bytes of an answer."""
_BATCH: Final = 500
_CHANGED: Final = (exceptions.Aborted, exceptions.AlreadyExists, exceptions.FailedPrecondition, exceptions.NotFound)
"""What a commit is refused with when something is no longer as its conditions say."""


class Found(NamedTuple):
    """A document as it was read, and the instant of its last change, which marks this state of it."""

    name: str
    values: dict[str, Any]
    changed: Any


class Write(NamedTuple):
    """What becomes of a document: these values and no others, or nothing for None.

    With `only`, the fields of these names alone become what `values` says. `condition` is True for "it must
    not be there", a mark for "it must still be in that state", and None for no matter what.
    """

    name: str
    values: Mapping[str, Any] | None
    condition: Any = None
    only: Sequence[str] | None = None


class Documents:
    """The documents of a database, under one root collection, through a channel that threads share."""

    def __init__(self, options: Options) -> None:
        self._options = options
        credentials, project = _login(options)
        self._root = f"projects/{project}/databases/{options.database}"
        self._parent = f"{self._root}/documents"
        self._collection = options.table
        self._metadata = [("authorization", "Bearer owner")] if options.emulator else []
        if options.emulator:
            limits = [("grpc.max_receive_message_length", _LARGEST), ("grpc.max_send_message_length", _LARGEST)]
            channel = grpc.insecure_channel(options.emulator, options=limits)
            self._api = FirestoreClient(transport=FirestoreGrpcTransport(channel=channel))
        else:
            self._api = FirestoreClient(credentials=credentials)
        again = (exceptions.InternalServerError, exceptions.ResourceExhausted, exceptions.ServiceUnavailable)
        self._retry = Retry(if_exception_type(*again), initial=0.05, maximum=2.0, timeout=options.retry_timeout)

    def close(self) -> None:
        """Close the channel."""
        self._api.transport.close()  # type: ignore[no-untyped-call]

    def name(self, *parts: str) -> str:
        """The full name of a document of the collection, or of one below another document."""
        return "/".join([self._parent, self._collection, *parts])

    def get(self, names: Iterable[str], transaction: bytes | None = None) -> dict[str, Found]:
        """Those of the documents that are there, by name."""
        wanted = list(dict.fromkeys(names))
        found: dict[str, Found] = {}
        for start in range(0, len(wanted), _BATCH):
            request = firestore.BatchGetDocumentsRequest.pb()(
                database=self._root, documents=wanted[start : start + _BATCH], transaction=transaction
            )
            answers = self._api.batch_get_documents(
                request=firestore.BatchGetDocumentsRequest.wrap(request), **self._reading
            )
            for each in answers:
                answer = firestore.BatchGetDocumentsResponse.pb(each)
                if answer.WhichOneof("result") == "found":
                    found[answer.found.name] = _found(answer.found)
        return found

    def query(self, asked: Any, below: str = "") -> Iterator[Found]:
        """What the query finds, as it comes; `below` is the document whose inner collection is asked."""
        request = firestore.RunQueryRequest.pb()(parent=below or self._parent, structured_query=asked)
        for each in self._api.run_query(request=firestore.RunQueryRequest.wrap(request), **self._reading):
            answer = firestore.RunQueryResponse.pb(each)
            if answer.HasField("document"):
                yield _found(answer.document)

    def count(self, asked: Any) -> int:
        """How many documents the query finds."""
        request = firestore.RunAggregationQueryRequest.pb()(parent=self._parent)
        request.structured_aggregation_query.structured_query.CopyFrom(asked)
        counting = request.structured_aggregation_query.aggregations.add(alias="count")
        counting.count.SetInParent()
        answers = self._api.run_aggregation_query(
            request=firestore.RunAggregationQueryRequest.wrap(request), **self._reading
        )
        counted = (firestore.RunAggregationQueryResponse.pb(each).result.aggregate_fields for each in answers)
        return next(int(fields["count"].integer_value) for fields in counted if "count" in fields)

    def add(self, name: str, field: str, number: int) -> int:
        """Add to a number that a document holds, and return the sum; the document is made if it is not there."""
        made = write.Write.pb()()
        made.update.name = name
        made.update_mask.SetInParent()  # no other field
        made.update_transforms.add(field_path=field).increment.integer_value = number
        [result] = self._commit([made], None, self._retry)  # repeated, it only leaves numbers out
        return int(result.transform_results[0].integer_value)

    def commit(self, writes: Iterable[Any], unchanged: Mapping[str, Any] | None = None) -> None:
        """Make all of the writes or none; `unchanged` names documents that must be as their marks say, None for absent.

        It is sent once: if the answer is lost, nobody knows.

        Raises:
            Stale: a document is not as its condition says.
        """
        try:
            if not unchanged:
                self._commit(writes, None, None)
                return
            begin = {"database": self._root}
            transaction = self._api.begin_transaction(request=begin, **self._reading).transaction
            found = self.get(unchanged, transaction)
            if any((found[name].changed if name in found else None) != mark for name, mark in unchanged.items()):
                end = {"database": self._root, "transaction": transaction}
                self._api.rollback(request=end, **self._reading)
                raise Stale
            self._commit(writes, transaction, None)
        except _CHANGED:
            raise Stale from None

    @property
    def _reading(self) -> dict[str, Any]:
        return {"retry": self._retry, "timeout": self._options.timeout, "metadata": self._metadata}

    def _commit(self, writes: Iterable[Any], transaction: bytes | None, retry: Retry | None) -> Any:
        request = firestore.CommitRequest.pb()(database=self._root, writes=writes, transaction=transaction)
        answer = self._api.commit(
            request=firestore.CommitRequest.wrap(request),
            retry=retry,
            timeout=self._options.timeout,
            metadata=self._metadata,
        )
        return firestore.CommitResponse.pb(answer).write_results


def as_message(made: Write) -> Any:
    """The write for the protocol."""
    message = write.Write.pb()()
    if made.values is None:
        message.delete = made.name
    else:
        message.update.name = made.name
        for name, value in fields_of(made.values).items():
            message.update.fields[name].CopyFrom(value)
        if made.only is not None:
            message.update_mask.field_paths.extend(made.only)
    if made.condition is True:
        message.current_document.exists = False
    elif made.condition is not None:
        message.current_document.update_time.CopyFrom(made.condition)
    return message


def select(collection: str, filters: Sequence[Any], *fields: str) -> Any:
    """A query for the documents of a collection that pass all the filters; of these fields, or of all."""
    asked = query.StructuredQuery.pb()()
    asked.from_.add(collection_id=collection)
    if filters:
        asked.where.CopyFrom(joined(filters, "AND"))
    for field in fields:
        asked.select.fields.add(field_path=field)
    return asked


def joined(filters: Sequence[Any], word: str) -> Any:
    """The filters as one."""
    if len(filters) == 1:
        return filters[0]
    made = query.StructuredQuery.Filter.pb()()
    made.composite_filter.op = _Joined[word].value
    made.composite_filter.filters.extend(filters)
    return made


def _login(options: Options) -> tuple[Any, str]:
    if options.emulator:
        return AnonymousCredentials(), options.project or "lamina"  # type: ignore[no-untyped-call]
    credentials: Any = options.credentials
    found: str | None = None
    if credentials is None:
        credentials, found = google.auth.default(scopes=[_SCOPE])
    elif not hasattr(credentials, "refresh"):
        file = str(credentials)
        credentials, found = google.auth.load_credentials_from_file(file, scopes=[_SCOPE])  # type: ignore[no-untyped-call]
    project = options.project or found or getattr(credentials, "project_id", None)
    if not project:
        raise ConfigError("project_id", "is not known", "Give the id of the project, or set GOOGLE_CLOUD_PROJECT.")
    return credentials, str(project)


def _found(document: Any) -> Found:
    return Found(document.name, values_of(document.fields), document.update_time)

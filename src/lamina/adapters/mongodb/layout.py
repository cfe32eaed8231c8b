"""The collections with their indexes, and the version of their layout."""

from __future__ import annotations

from typing import Any, Final

from pymongo import ASCENDING, DESCENDING, IndexModel, MongoClient, UpdateOne
from pymongo.collection import Collection
from pymongo.errors import DuplicateKeyError
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import Primary

from lamina.adapters._shared.layout_version import made_by_newer
from lamina.adapters.mongodb.commits import DURABLE, Collections
from lamina.adapters.mongodb.documents import WITHOUT_VECTOR, entry_of, id_of, words_of
from lamina.adapters.mongodb.failures import BACKEND, damaged
from lamina.domain.lexical import ANALYZER_VERSION

__all__ = ["COUNTER", "VERSION", "collections_of", "prepare"]

VERSION: Final = 1
_PAGE: Final = 500

COUNTER: Final = id_of("", "count of insertions")
_LAYOUT: Final = id_of("", "layout")
"""No tenant has an empty name."""

_TTL: Final = IndexModel([("expires_on", ASCENDING)], name="expiry", expireAfterSeconds=0)
_SCOPE: Final = [("tenant", ASCENDING), ("owner", ASCENDING), ("namespace", ASCENDING)]
_BY_RELEVANCE: Final = [("relevance", DESCENDING), ("created", DESCENDING), ("id", ASCENDING)]
_MEMORIES: Final = [
    _TTL,
    IndexModel([*_SCOPE, ("seq", ASCENDING)], name="by_seq"),
    IndexModel([("tenant", ASCENDING), ("seq", ASCENDING)], name="by_tenant_seq"),
    IndexModel([*_SCOPE, *_BY_RELEVANCE], name="by_relevance"),
    IndexModel([("tenant", ASCENDING), ("digest", ASCENDING)], name="by_digest"),
    IndexModel([("tenant", ASCENDING), ("words", ASCENDING)], name="by_word"),
    IndexModel([("tenant", ASCENDING), ("tokens", ASCENDING)], name="by_metadata"),
]
_HISTORY: Final = [_TTL, IndexModel([("of", ASCENDING), ("revision", DESCENDING)], name="by_entry")]
_WRITTEN: Final = IndexModel([("tenant", ASCENDING), ("written", ASCENDING)], name="by_writing")


def collections_of(client: MongoClient[dict[str, Any]], database: str, table: str) -> Collections:
    """The collections, read from the primary and written to a majority, whatever the URL says.

    So each read sees all that was acknowledged before it:
    https://www.mongodb.com/docs/manual/core/read-isolation-consistency-recency/
    """
    held = client.get_database(
        database, read_preference=Primary(), write_concern=DURABLE, read_concern=ReadConcern("majority")
    )
    return Collections(held[table], held[f"{table}.history"], held[f"{table}.controls"])


def prepare(collections: Collections, *, with_vector_index: bool) -> None:
    """Make what is missing, and index all contents anew if an earlier version of the analyzer did it.

    Several processes may do it at the same time.

    Raises:
        StoreDamaged: the collection is not ours, or a newer Lamina's. Nothing is changed.
    """
    layout = collections.controls.find_one({"_id": _LAYOUT})
    if layout is None:
        if collections.memories.find_one({}, {"_id": 1}) is not None:
            raise damaged(f"{_named(collections.memories)} holds documents that Lamina did not put there")
    else:
        _check(layout, _named(collections.memories))
    collections.memories.create_indexes([*_MEMORIES, *([_WRITTEN] if with_vector_index else [])])
    collections.history.create_indexes(_HISTORY)
    for document in ({"_id": COUNTER, "last": 0}, {"_id": _LAYOUT, "version": VERSION, "words": ANALYZER_VERSION}):
        try:
            collections.controls.update_one({"_id": document["_id"]}, {"$setOnInsert": document}, upsert=True)
        except DuplicateKeyError:  # another process was faster
            continue
    if layout is not None and layout["words"] < ANALYZER_VERSION:
        _index_anew(collections)


def _index_anew(collections: Collections) -> None:
    changes = []
    for document in collections.memories.find({}, {**WITHOUT_VECTOR, "mark": 1}):
        words = words_of(entry_of(document).content)
        as_read = {"_id": document["_id"], "mark": document["mark"]}  # what was written since has its words
        changes.append(UpdateOne(as_read, {"$set": {"words": words}}))
        if len(changes) == _PAGE:
            collections.memories.bulk_write(changes, ordered=False)
            changes = []
    if changes:
        collections.memories.bulk_write(changes, ordered=False)
    collections.controls.update_one({"_id": _LAYOUT}, {"$max": {"words": ANALYZER_VERSION}})


def _check(layout: dict[str, Any], name: str) -> None:
    version, words = layout.get("version"), layout.get("words")
    if not isinstance(version, int) or not isinstance(words, int):
        raise damaged(f"the layout of {name} cannot be read")
    if version > VERSION or words > ANALYZER_VERSION:
        found, known = f"{version} with words {words}", f"{VERSION} with words {ANALYZER_VERSION}"
        raise made_by_newer(BACKEND, name, found, known)


def _named(collection: Collection[dict[str, Any]]) -> str:
    return f"the collection {collection.name}"

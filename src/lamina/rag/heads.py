"""Heads of documents: what a caller says, read and checked, and what makes two ingestions the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from lamina.domain.document import QUARANTINED, Document
from lamina.domain.text import check_name, clean, is_blank
from lamina.domain.validation import check_metadata, clean_metadata
from lamina.errors import InvalidInput, InvalidType
from lamina.rag.chunking import CHUNKING_VERSION, ChunkOptions

__all__ = [
    "EDITION",
    "FORMER",
    "RESERVED",
    "canonical_id",
    "edition_of",
    "editions_of",
    "former_with",
    "is_same",
    "new_head",
    "read_content",
    "read_metadata",
]

EDITION: Final = "edition"
"""Under this key of a head's options is the name of the ingestion whose chunks count."""

FORMER: Final = "former"
"""Under this key are the names of ingestions that it has replaced, with how many chunks each had, the newest last."""

MAX_FORMER: Final = 50

RESERVED: Final = frozenset({"headers", "page", "table_header", "chunk", "metadata"})
"""Keys of metadata that chunks have by themselves, and the one that shows a mistake."""

MAX_METADATA_BYTES: Final = 16 * 1024
"""Of a document's metadata as JSON: each of its chunks carries a copy."""


def read_content(content: object, max_bytes: int) -> str:
    """The text, cleaned; chunks' offsets are into what this returns.

    Raises:
        InvalidType: it is no text.
        InvalidInput: it is blank or too large.
    """
    if not isinstance(content, str):
        remedy = "Give a str; for files there is ingest_file."
        raise InvalidType("content", f"must be text, not {type(content).__name__}", remedy)
    text = clean(content)
    size = len(text.encode())
    if size > max_bytes:
        problem = f"has {size} bytes, and the limit is {max_bytes}"
        raise InvalidInput("content", problem, "Split the document, or raise the setting rag.max_bytes.")
    if is_blank(text):
        raise InvalidInput("content", "is blank", "Give a text with at least one visible character.")
    return text


def read_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata, cleaned and checked."""
    for key in metadata:
        if key in RESERVED:
            remedy = "Choose another name; give each value as a keyword of its own."
            raise InvalidInput("metadata", f"{key!r} is a name that chunks use themselves", remedy)
    cleaned: dict[str, Any] = clean_metadata(metadata)
    check_metadata(cleaned)
    size = len(json.dumps(cleaned, ensure_ascii=False).encode())
    if size > MAX_METADATA_BYTES:
        remedy = f"Use at most {MAX_METADATA_BYTES}: every chunk carries a copy."
        raise InvalidInput("metadata", f"has {size} bytes as JSON", remedy)
    return cleaned


def canonical_id(tenant: str, owner: str | None, source: str) -> str:
    """The id of the first document of a source: the same for whoever ingests it, so that two at once meet."""
    key = json.dumps([tenant, owner, source])
    return f"doc_{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def new_head(
    source: str,
    content: str,
    *,
    tenant: str,
    owner: str | None,
    metadata: dict[str, Any],
    options: ChunkOptions,
    counter: str,
    directory: str | None,
    now: datetime,
) -> Document:
    """A head without id, edition and generation."""
    check_name("source", source)
    if owner is not None:
        check_name("owner", owner)
    kept: dict[str, Any] = {
        "strategy": options.strategy.value,
        "size": options.size,
        "overlap": options.overlap,
        "counter": counter,
        "version": CHUNKING_VERSION,
    }
    if directory is not None:
        kept["directory"] = directory
    digest = hashlib.sha256(content.encode()).hexdigest()
    return Document("", tenant, source, now, owner=owner, metadata=metadata, digest=digest, options=kept)


def is_same(old: Document, new: Document) -> bool:
    """Whether ingesting the new one would change nothing."""
    options = {key: value for key, value in old.options.items() if key not in {EDITION, FORMER, QUARANTINED}}
    return (old.digest, old.metadata, old.owner, options) == (new.digest, new.metadata, new.owner, new.options)


def edition_of(head: Document) -> str:
    """The name of the ingestion whose chunks count."""
    return str(head.options.get(EDITION, ""))


def former_with(head: Document) -> list[list[Any]]:
    """What `FORMER` is for the document that takes this one's place."""
    return [*head.options.get(FORMER, []), [edition_of(head), head.chunks]][-MAX_FORMER:]


def editions_of(head: Document) -> list[tuple[str, int]]:
    """The ingestions of the document, former ones too as far as they are known, with how many chunks each has."""
    return [(str(name), int(chunks)) for name, chunks in former_with(head)]

"""Documents of a server."""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import anyio.to_thread

from lamina.client.reading import chunk_of, document_of, retrieved
from lamina.client.resource import Resource, sendable
from lamina.client.transport import Request, encoded
from lamina.domain.document import Document, RagChunk
from lamina.domain.recall import Cutoff, Results, SearchMode
from lamina.domain.text import check_name
from lamina.errors import DocumentNotFound, InvalidInput
from lamina.rag.rendering import render_chunks
from lamina.rag.reports import RagStats

__all__ = ["Documents"]

_ROOT = ("v1", "documents")
_TYPES = {".md": "text/markdown", ".markdown": "text/markdown"}
_UNKNOWN = "application/octet-stream"


class Documents(Resource):
    """The verbs of `lamina.RagPipeline`, which says what they mean."""

    async def ingest(
        self,
        content: str,
        source: str,
        *,
        owner: str | None = None,
        chunk_strategy: str | None = None,
        chunk_size: int | None = None,
        chunk_overlap: int | None = None,
        replace: bool = True,
        **metadata: Any,
    ) -> str:
        """Take a text in, and return its document's id; further keywords are its metadata.

        Raises:
            InvalidInput: the content is blank or too large, or an option or the metadata cannot be.
        """
        body = {
            "content": content,
            "source": source,
            "owner": self._for(owner),
            "chunk_strategy": chunk_strategy,
            "chunk_size": chunk_size,
            "chunk_overlap": chunk_overlap,
            "replace": replace,
            "metadata": metadata or None,
        }
        return await self._ask(Request(method="POST", path=_ROOT, body=sendable(body)), lambda answer: answer["id"])

    async def ingest_file(
        self,
        path: str | PathLike[str],
        *,
        source: str | None = None,
        owner: str | None = None,
        chunk_strategy: str | None = None,
        chunk_size: int | None = None,
        chunk_overlap: int | None = None,
        replace: bool = True,
        **metadata: Any,
    ) -> str:
        """Send a file of this machine, which the server reads as text; its document's id.

        The source is the file's name, unless said otherwise. Further keywords are its metadata, which must be short
        (4,096 characters as JSON): they travel in the URL.

        Raises:
            InvalidInput: there is no such file, the server cannot read it, or the metadata cannot be.
        """
        file = Path(path)
        try:
            content = await anyio.to_thread.run_sync(file.read_bytes)
        except OSError as error:
            raise InvalidInput(
                "path", f"{file.name!r} cannot be read: {error.strerror}", "Give another path."
            ) from error
        query = {
            "source": file.name if source is None else source,
            "owner": self._for(owner),
            "chunk_strategy": chunk_strategy,
            "chunk_size": chunk_size,
            "chunk_overlap": chunk_overlap,
            "replace": replace,
            "metadata": encoded(metadata).decode() if metadata else None,
        }
        kind = _TYPES.get(file.suffix.lower()) or mimetypes.guess_type(file.name)[0] or _UNKNOWN
        asked = Request(method="POST", path=(*_ROOT, "files"), query=query, content=content, content_type=kind)
        return await self._ask(asked, lambda answer: answer["id"])

    async def retrieve(
        self,
        query: str,
        *,
        top_k: int = 5,
        owner: str | None = None,
        filter: Mapping[str, Any] | None = None,
        min_score: Cutoff = 0.0,
        neighbors: int = 0,
        mode: SearchMode | str | None = None,
        rerank: str | None = None,
    ) -> Results[RagChunk]:
        """The chunks that answer the query best, best first; `rerank` is `cross-encoder` or `none`."""
        body = {
            "query": query,
            "top_k": top_k,
            "owner": self._for(owner),
            "where": filter,
            "min_score": min_score,
            "neighbors": neighbors,
            "mode": mode,
            "rerank": rerank,
        }
        asked = Request(method="POST", path=(*_ROOT, "retrieve"), body=sendable(body), reads=True)
        return await self._ask(asked, retrieved)

    async def get_context(self, query: str, *, top_k: int = 5, **options: Any) -> str:
        """What `retrieve` finds as one text; empty if nothing is found."""
        return render_chunks(await self.retrieve(query, top_k=top_k, **options))

    async def stats(self, *, owner: str | None = None) -> RagStats:
        """How many documents and chunks the owner, or everybody, can see."""
        asked = Request(method="GET", path=(*_ROOT, "stats"), query={"owner": self._for(owner)})
        return await self._ask(asked, lambda answer: RagStats(answer["documents"], answer["chunks"]))

    async def list_documents(self, *, owner: str | None = None, limit: int | None = None) -> list[Document]:
        """The heads of documents, by source and then id."""
        pages = self._pages(_ROOT, {"owner": self._for(owner)}, document_of, limit=limit)
        return [each async for each in pages]

    async def get(self, id: str, *, owner: str | None = None) -> Document | None:
        """The head of the document, or None."""
        try:
            return await self._ask(self._one("GET", id, owner), document_of)
        except DocumentNotFound:
            return None

    async def chunks(self, id: str, *, owner: str | None = None) -> list[RagChunk]:
        """All chunks of the document in order, with the score 1.

        Raises:
            DocumentNotFound: the owner, or anybody, sees no such document.
        """
        path = (*_ROOT, check_name("id", id), "chunks")
        return [each async for each in self._pages(path, {"owner": self._for(owner)}, chunk_of)]

    async def remove(self, id: str, *, owner: str | None = None) -> bool:
        """Delete the document with its chunks; False if there is none.

        Raises:
            ScopeError: every owner shares it, and the call is an owner's.
        """
        try:
            await self._transport.ask(self._one("DELETE", id, owner))
        except DocumentNotFound:
            return False
        return True

    def _one(self, method: str, id: str, owner: str | None) -> Request:
        return Request(method=method, path=(*_ROOT, check_name("id", id)), query={"owner": self._for(owner)})

"""The RAG pipeline: documents in, the pieces that answer a question out."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any, Final, Self

from lamina import registry
from lamina.domain.document import Document, RagChunk
from lamina.domain.filters import Filter
from lamina.domain.memory import DEFAULT_NAME, UNSET, Unset
from lamina.domain.recall import AUTO, Cutoff, Results, SearchMode
from lamina.domain.text import check_name
from lamina.domain.validation import check_unit_interval, check_whole_number
from lamina.errors import DocumentNotFound
from lamina.memory.embedding import Progress, ReembedReport
from lamina.memory.factory import DEFAULT_EMBEDDER
from lamina.memory.inputs import read_filter, read_mode, read_query
from lamina.memory.recall import RecallRequest
from lamina.memory.reranking import Rerankers
from lamina.memory.scrubbing import scrub_all
from lamina.memory.secret_screen import SecretScreen
from lamina.ports.clock import Clock, IdFactory, utc_now
from lamina.ports.embedder import Embedder
from lamina.ports.events import Emit
from lamina.ports.memory_adapter import MemoryAdapter
from lamina.ports.state_store import StateStore
from lamina.ports.token_counter import TokenCounter
from lamina.providers.tokens import checked_counter, token_counter
from lamina.rag.chunk_index import ChunkIndex
from lamina.rag.chunking import ChunkOptions, ChunkStrategy
from lamina.rag.folders import FolderIngestion, read_file
from lamina.rag.heads import new_head, read_content, read_metadata
from lamina.rag.ingesting import Ingested, Ingester
from lamina.rag.rendering import render_chunks
from lamina.rag.reports import IngestProgress, IngestReport, RagStats
from lamina.rag.retrieving import Retriever
from lamina.settings.rag import RagConfig

__all__ = ["RagPipeline", "new_document_id"]

MAX_TOP_K: Final = 1_000
MAX_NEIGHBORS: Final = 100


def new_document_id() -> str:
    """`doc_` and 32 hex digits of a random UUID."""
    return f"doc_{uuid.uuid4().hex}"


class RagPipeline:
    """The documents of one tenant: chunked, embedded, found by meaning and by words.

    A document is shared in the tenant unless it is ingested with an `owner`. With an `owner`, a read sees
    that owner's own documents and the shared ones; without, those of everybody. A change with an owner
    touches only that owner's own. All coroutines may run side by side, in several processes too.

    Args:
        adapter: Where chunks are kept; a collection of their own, such as `SqliteAdapter(path, table="lamina_chunks")`.
        store: Where the heads of documents are kept.
        tenant: Whose documents they are.
        embedder: What makes the vectors: by default the one that comes with Lamina; None for a search by words alone.
        config: Defaults and limits.
        counter: What tokens are counted with; the estimate if none is given.
        clock: Where times come from.
        new_id: Where ids come from.
        emit: Told of secrets that are found in documents.
    """

    def __init__(
        self,
        adapter: MemoryAdapter,
        store: StateStore,
        *,
        tenant: str = DEFAULT_NAME,
        embedder: Embedder | Unset | None = UNSET,
        config: RagConfig | None = None,
        counter: TokenCounter | None = None,
        clock: Clock = utc_now,
        new_id: IdFactory = new_document_id,
        emit: Emit | None = None,
    ) -> None:
        self.tenant = check_name("tenant", tenant)
        self.config = config or RagConfig()
        made = registry.load_embedder(DEFAULT_EMBEDDER) if isinstance(embedder, Unset) else embedder
        self._counter = checked_counter(counter) or token_counter()
        self._clock = clock
        self._store = store
        self._index = ChunkIndex(adapter, tenant=tenant, embedder=made, clock=clock, new_id=new_id)
        self._ingester = Ingester(self._index, store, counter=self._counter, clock=clock, new_id=new_id)
        self._retriever = Retriever(self._index, store)
        self._rerankers = Rerankers(self.config.rerank)
        self._secrets = SecretScreen(self.config.secrets or "off", tenant=tenant, clock=clock, emit=emit)
        self._is_loaded = False

    @property
    def embedder(self) -> Embedder | None:
        """What makes the vectors, if anything does."""
        return self._index.space.embedder

    async def initialize(self) -> None:
        """Open the adapter and the store. Idempotent."""
        await self._index.adapter.initialize()
        await self._store.initialize()
        await self._load()

    async def close(self) -> None:
        """Let go of the adapter, the store and the models; not to be called where others use them. Idempotent."""
        await self._index.adapter.close()
        await self._store.close()
        if self.embedder is not None:
            await self.embedder.close()
        await self._rerankers.close()

    async def __aenter__(self) -> Self:
        await self.initialize()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def ingest(
        self,
        content: str,
        source: str,
        *,
        owner: str | None = None,
        chunk_strategy: ChunkStrategy | str | None = None,
        chunk_size: int | None = None,
        chunk_overlap: int | None = None,
        replace: bool = True,
        **metadata: Any,
    ) -> str:
        """Take a text in, and return its document's id; further keywords are its metadata.

        A document of the same source and owner is replaced and keeps its id; readers see the old one until
        the new one is whole. If nothing is different, nothing is done; chunks whose text is as it was keep
        their vectors. With `replace` off it is added beside what is there; a later `replace` takes the place
        of all of them. If the embedder fails, the chunks are kept and found by words: see `reembed_missing`.

        Raises:
            InvalidInput: the content is blank or too large, the options are impossible, a name or the metadata
                cannot be stored; nothing was written.
            InvalidType: something has a type that cannot be taken; nothing was written.
            Conflict: others kept replacing the document meanwhile.
        """
        options = self._options(chunk_strategy, chunk_size, chunk_overlap)
        return (await self._ingest(content, source, metadata, owner=owner, options=options, replace=replace)).id

    async def ingest_file(
        self,
        path: str | PathLike[str],
        *,
        source: str | None = None,
        owner: str | None = None,
        chunk_strategy: ChunkStrategy | str | None = None,
        chunk_size: int | None = None,
        chunk_overlap: int | None = None,
        replace: bool = True,
        **metadata: Any,
    ) -> str:
        """Take a file in: text and Markdown by itself; HTML, PDF, DOCX and others with the extra `documents`.

        The source is the path as it is given, unless said otherwise. Nothing is fetched that the file links to.

        Raises:
            InvalidInput: as `ingest`; or there is no such file, it is too large, or cannot be converted.
            MissingExtra: the file's kind needs the extra `documents`.
        """
        options = self._options(chunk_strategy, chunk_size, chunk_overlap)
        name, content = await read_file(path, self.config)
        given = source if source is not None else name
        return (await self._ingest(content, given, metadata, owner=owner, options=options, replace=replace)).id

    async def ingest_directory(
        self,
        path: str | PathLike[str],
        *,
        pattern: str | Iterable[str] | None = None,
        exclude: str | Iterable[str] = (),
        prefix: str | None = None,
        prune: bool = False,
        progress: IngestProgress | None = None,
        owner: str | None = None,
        chunk_strategy: ChunkStrategy | str | None = None,
        chunk_size: int | None = None,
        chunk_overlap: int | None = None,
        **metadata: Any,
    ) -> IngestReport:
        """Take in the files of a folder and those below it; a file that fails never stops the others.

        `pattern` and `exclude` are globs: with a slash of the path below the folder (`**` is any number of
        folders), without one of the name. Without a `pattern`, every file of a kind that is known is taken.
        Hidden files and folders are passed over, and links that lead out of the folder refused. The source
        is the folder as it is given, or `prefix`, and the path below it. With `prune`, documents that came
        from this folder and whose file is gone are removed.

        Raises:
            InvalidInput: there is no such folder, or an option or the metadata cannot be.
        """
        options = self._options(chunk_strategy, chunk_size, chunk_overlap)
        read_metadata(metadata)

        async def ingest(content: str, source: str, directory: str) -> Ingested:
            return await self._ingest(content, source, metadata, owner=owner, options=options, directory=directory)

        folder = FolderIngestion(path, pattern=pattern, exclude=exclude, prefix=prefix)
        report = await folder.run(ingest, self.config, progress)
        if prune:
            for head in await self._own(owner):
                if folder.lost(head) and await self._ingester.remove(head):
                    report.removed.append(head.source)
        return report

    async def retrieve(
        self,
        query: str,
        *,
        top_k: int = 5,
        owner: str | None = None,
        filter: Filter | Mapping[str, Any] | None = None,
        min_score: Cutoff = 0.0,
        neighbors: int = 0,
        mode: SearchMode | str | None = None,
        rerank: str | None = None,
    ) -> Results[RagChunk]:
        """The chunks that answer the query best, best first; at most `top_k`, fewer only if there are no more.

        `filter` is a condition on metadata, such as `{"category": "api"}`. The score is the similarity alone, in
        [0, 1]; `min_score` is inclusive, and "auto" is as for `min_match` of `MemoryEngine.recall`. `neighbors`
        joins that many chunks before and after each one found, without their overlaps; a hit that is another's
        neighbour does not stand for itself then. `rerank` names what reads the best chunks again, as in
        `MemoryEngine.recall`, and its word is part of the score. If a way of searching cannot answer, the other one
        does, and the list's `degraded` says so.

        Raises:
            InvalidInput: the query is blank, or an argument is out of range.
        """
        await self._load()
        if owner is not None:
            check_name("owner", owner)
        request = RecallRequest(
            query=read_query(query),
            scope=self._index.read_scope(owner),
            filter=read_filter(self._clock(), where=filter),
            mode=read_mode(mode, self.config.search_mode),
            limit=check_whole_number("top_k", top_k, 1, MAX_TOP_K),
            offset=0,
            min_score=None if min_score == AUTO else check_unit_interval("min_score", min_score),
            touch=False,
            explain=False,
            reranker=self._rerankers.choose(rerank),
            min_match=AUTO if min_score == AUTO else None,
        )
        return await self._retriever.retrieve(request, check_whole_number("neighbors", neighbors, 0, MAX_NEIGHBORS))

    async def get_context(self, query: str, *, top_k: int = 5, **options: Any) -> str:
        """What `retrieve` finds as one text: see `render_chunks`; empty if nothing is found."""
        return render_chunks(await self.retrieve(query, top_k=top_k, **options))

    async def stats(self, *, owner: str | None = None) -> RagStats:
        """How many documents and chunks the owner, or everybody, can see."""
        heads = await self.list_documents(owner=owner)
        return RagStats(len(heads), sum(head.chunks for head in heads))

    async def list_documents(
        self,
        *,
        owner: str | None = None,
        limit: int | None = None,
        offset: int = 0,
        after: tuple[str, str] | None = None,
    ) -> list[Document]:
        """The heads of documents, by source and then id; `after` goes on behind a source and id."""
        return await self._store.find_documents(self.tenant, owner=owner, limit=limit, offset=offset, after=after)

    async def get(self, id: str, *, owner: str | None = None) -> Document | None:
        """The head of the document, or None."""
        check_name("id", id)
        if owner is not None:
            check_name("owner", owner)
        found = await self._store.get_documents(self.tenant, [id])
        return next((head for head in found if owner is None or head.owner in {None, owner}), None)

    async def chunks(self, id: str, *, owner: str | None = None) -> list[RagChunk]:
        """All chunks of the document in order, with the score 1.

        Raises:
            DocumentNotFound: the owner, or anybody, sees no such document.
        """
        head = await self.get(id, owner=owner)
        if head is None:
            raise DocumentNotFound(id)
        return [row.shown(head, 1.0) async for row in self._index.rows(head)]

    async def remove(self, id: str, *, owner: str | None = None) -> bool:
        """Delete the document with its chunks; False if there is none. With an owner: only that owner's own."""
        if owner is not None:
            check_name("owner", owner)
        head = await self.get(id)
        while head is not None and (owner is None or head.owner == owner):
            if await self._ingester.remove(head):
                return True
            head = await self.get(id)  # it was replaced meanwhile
        return False

    async def clear(self, *, owner: str | None = None) -> int:
        """Delete every document of the tenant, or with an owner that owner's own; how many there were."""
        heads = await self._own(owner) if owner is not None else await self.list_documents()
        return sum([await self.remove(head.id, owner=owner) for head in heads])

    async def purge_orphans(self) -> int:
        """Delete chunks that a crash left behind and that no search shows; how many there were. Reads everything."""
        return await self._ingester.purge()

    async def scrub(self) -> None:
        """See to it that of documents which were removed or replaced nothing is left in the file or its log.

        Words may be left there by an SQLite before 3.42, and anything in the log until it is emptied.

        Raises:
            Unsupported: the store or the adapter cannot; the one that can has done it.
            AdapterUnavailable: another process reads on, so that the log could not be emptied; try again.
        """
        await scrub_all([self._index.adapter, self._store])

    async def reembed_missing(self, *, progress: Progress | None = None) -> ReembedReport:
        """Embed the chunks that have no vector, as after a failure of the embedder.

        Raises:
            EmbeddingFingerprintError: the stored vectors are another model's; see `reembed`.
            ProviderError: the embedder failed; what was embedded until then is kept.
        """
        await self._load()
        return await self._index.space.embed_missing(progress=progress)

    async def reembed(self, *, force: bool = False, progress: Progress | None = None) -> ReembedReport:
        """Change the chunks over to the configured embedder, then embed whatever has no vector."""
        await self._load()
        return await self._index.space.reembed(force=force, progress=progress)

    async def _ingest(
        self,
        content: str,
        source: str,
        metadata: Mapping[str, Any],
        *,
        owner: str | None,
        options: ChunkOptions,
        replace: bool = True,
        directory: str | None = None,
    ) -> Ingested:
        text, kept = read_content(content, self.config.max_bytes), read_metadata(metadata)
        text, kept = await self._secrets.document(source, text, kept)
        draft = new_head(
            source,
            text,
            tenant=self.tenant,
            owner=owner,
            metadata=kept,
            options=options,
            counter=self._counter.name,
            directory=directory,
            now=self._clock(),
        )
        await self._load()
        return await self._ingester.ingest(draft, text, options, replace=replace)

    def _options(self, strategy: str | None, size: int | None, overlap: int | None) -> ChunkOptions:
        config = self.config
        return ChunkOptions.read(
            config.chunk_strategy if strategy is None else strategy,
            config.chunk_size if size is None else size,
            config.chunk_overlap if overlap is None else overlap,
        )

    async def _own(self, owner: str | None) -> list[Document]:
        """The owner's own documents; for None the shared ones."""
        found = await self._store.find_documents(self.tenant, owner=owner, include_shared=owner is None)
        return [head for head in found if head.owner == owner]

    async def _load(self) -> None:
        if not self._is_loaded:
            await self._index.space.load()
            self._is_loaded = True

"""The client without `await`, over the event loop that every blocking twin of the process shares."""

from __future__ import annotations

from lamina.client.client import LaminaClient
from lamina.client.documents import Documents as AsyncDocuments
from lamina.client.memories import Memories as AsyncMemories
from lamina.client.packs import Packs as AsyncPacks
from lamina.client.remote_memory import RemoteMemory
from lamina.client.threads import Threads as AsyncThreads
from lamina.sync.forwarding import Blocking, Resource, blocking_iterator, blocking_method, made_as, plain_method

__all__ = ["SyncLaminaClient", "SyncRemoteMemory"]

_PAGE = 100


class Memories(Blocking[AsyncMemories]):
    """A `lamina.client.memories.Memories` that blocks."""

    store = blocking_method(AsyncMemories.store)
    store_many = blocking_method(AsyncMemories.store_many)
    recall = blocking_method(AsyncMemories.recall)
    get = blocking_method(AsyncMemories.get)
    history = blocking_method(AsyncMemories.history)
    scan = blocking_iterator(AsyncMemories.scan, page=_PAGE)
    update = blocking_method(AsyncMemories.update)
    supersede = blocking_method(AsyncMemories.supersede)
    forget = blocking_method(AsyncMemories.forget)
    forget_where = blocking_method(AsyncMemories.forget_where)
    quarantine = blocking_method(AsyncMemories.quarantine)
    quarantined = blocking_method(AsyncMemories.quarantined)
    release = blocking_method(AsyncMemories.release)
    forget_source = blocking_method(AsyncMemories.forget_source)


class Threads(Blocking[AsyncThreads]):
    """A `lamina.client.threads.Threads` that blocks."""

    create = blocking_method(AsyncThreads.create)
    add_message_to_thread = blocking_method(AsyncThreads.add_message_to_thread)
    add_messages = blocking_method(AsyncThreads.add_messages)
    get_thread_context = blocking_method(AsyncThreads.get_thread_context)
    list_threads = blocking_method(AsyncThreads.list_threads)
    archive = blocking_method(AsyncThreads.archive)
    unarchive = blocking_method(AsyncThreads.unarchive)
    retrieve = blocking_method(AsyncThreads.retrieve)
    history = blocking_method(AsyncThreads.history)
    expand = blocking_method(AsyncThreads.expand)
    delete = blocking_method(AsyncThreads.delete)
    compact = blocking_method(AsyncThreads.compact)
    extract_memories = blocking_method(AsyncThreads.extract_memories)


class Documents(Blocking[AsyncDocuments]):
    """A `lamina.client.documents.Documents` that blocks."""

    ingest = blocking_method(AsyncDocuments.ingest)
    ingest_file = blocking_method(AsyncDocuments.ingest_file)
    retrieve = blocking_method(AsyncDocuments.retrieve)
    get_context = blocking_method(AsyncDocuments.get_context)
    stats = blocking_method(AsyncDocuments.stats)
    list_documents = blocking_method(AsyncDocuments.list_documents)
    get = blocking_method(AsyncDocuments.get)
    chunks = blocking_method(AsyncDocuments.chunks)
    remove = blocking_method(AsyncDocuments.remove)


class Packs(Blocking[AsyncPacks]):
    """A `lamina.client.packs.Packs` that blocks."""

    create = blocking_method(AsyncPacks.create)
    get = blocking_method(AsyncPacks.get)
    list = blocking_method(AsyncPacks.list)
    count = blocking_method(AsyncPacks.count)
    update = blocking_method(AsyncPacks.update)
    archive_pack = blocking_method(AsyncPacks.archive_pack)
    activate = blocking_method(AsyncPacks.activate)
    delete = blocking_method(AsyncPacks.delete)
    summary = blocking_method(AsyncPacks.summary)
    metadata = blocking_method(AsyncPacks.metadata)
    add = blocking_method(AsyncPacks.add)
    add_many = blocking_method(AsyncPacks.add_many)
    memory = blocking_method(AsyncPacks.memory)
    with_embeddings = blocking_method(AsyncPacks.with_embeddings)
    update_memory = blocking_method(AsyncPacks.update_memory)
    supersede = blocking_method(AsyncPacks.supersede)
    pin = blocking_method(AsyncPacks.pin)
    unpin = blocking_method(AsyncPacks.unpin)
    archive = blocking_method(AsyncPacks.archive)
    restore = blocking_method(AsyncPacks.restore)
    delete_memory = blocking_method(AsyncPacks.delete_memory)
    memories = blocking_method(AsyncPacks.memories)
    count_memories = blocking_method(AsyncPacks.count_memories)
    discover = blocking_method(AsyncPacks.discover)
    retrieve = blocking_method(AsyncPacks.retrieve)
    search = blocking_method(AsyncPacks.search)
    preview = blocking_method(AsyncPacks.preview)


class SyncLaminaClient(Resource[LaminaClient]):
    """A `LaminaClient` that blocks, made with the same arguments. Use it as a context manager, or call `close`."""

    @made_as(LaminaClient)
    def __init__(self, asynchronous: LaminaClient) -> None:
        super().__init__(asynchronous)

    def __repr__(self) -> str:
        return f"Sync{self.asynchronous!r}"

    @property
    def memories(self) -> Memories:
        """The memories."""
        return self.part(Memories, self.asynchronous.memories)

    @property
    def threads(self) -> Threads:
        """The threads."""
        return self.part(Threads, self.asynchronous.threads)

    @property
    def documents(self) -> Documents:
        """The documents."""
        return self.part(Documents, self.asynchronous.documents)

    @property
    def packs(self) -> Packs:
        """The context packs."""
        return self.part(Packs, self.asynchronous.packs)

    @property
    def owner(self) -> str | None:
        """On whose behalf calls are that say nothing else."""
        return self.asynchronous.owner

    close = blocking_method(LaminaClient.close)
    context = blocking_method(LaminaClient.context)
    submit = blocking_method(LaminaClient.submit)
    stream = blocking_iterator(LaminaClient.stream, page=1)
    export = blocking_iterator(LaminaClient.export, page=_PAGE)
    import_lines = blocking_method(LaminaClient.import_lines)
    run_maintenance = blocking_method(LaminaClient.run_maintenance)
    backup = blocking_method(LaminaClient.backup)
    check = blocking_method(LaminaClient.check)
    erase = blocking_method(LaminaClient.erase)
    stats = blocking_method(LaminaClient.stats)


class SyncRemoteMemory(Resource[RemoteMemory]):
    """A `RemoteMemory` that blocks, made with the same arguments. Use it as a context manager, or call `close`."""

    @made_as(RemoteMemory)
    def __init__(self, asynchronous: RemoteMemory) -> None:
        super().__init__(asynchronous)

    def __repr__(self) -> str:
        return f"Sync{self.asynchronous!r}"

    @property
    def session(self) -> str:
        """The session of calls that name none."""
        return self.asynchronous.session

    close = blocking_method(RemoteMemory.close)
    add = blocking_method(RemoteMemory.add)
    add_list = blocking_method(RemoteMemory.add_list)
    update = blocking_method(RemoteMemory.update)
    delete = blocking_method(RemoteMemory.delete)
    clear = blocking_method(RemoteMemory.clear)
    tier = blocking_method(RemoteMemory.tier)
    manage_context = blocking_method(RemoteMemory.manage_context)
    get_context = blocking_method(RemoteMemory.get_context)
    restore = blocking_method(RemoteMemory.restore)
    list = blocking_method(RemoteMemory.list)
    retrieve = blocking_method(RemoteMemory.retrieve)
    get_count = blocking_method(RemoteMemory.get_count)
    is_empty = blocking_method(RemoteMemory.is_empty)
    get_session_ids = blocking_method(RemoteMemory.get_session_ids)
    has_session = blocking_method(RemoteMemory.has_session)
    get_summaries = blocking_method(RemoteMemory.get_summaries)
    archived = blocking_method(RemoteMemory.archived)
    expand = blocking_method(RemoteMemory.expand)
    decompress_event = plain_method(RemoteMemory.decompress_event)
    decompress_events = plain_method(RemoteMemory.decompress_events)

"""What a third party writes: the ten core methods over a dict, and nothing that it does not declare."""

from copy import deepcopy
from datetime import UTC

from lamina.domain.validation import check_entry
from lamina.errors import EmbeddingDimensionError, Unsupported
from lamina.ports.memory_adapter import (
    UNREVISED_FIELDS,
    Capability,
    ListOptions,
    MemoryAdapter,
    Order,
    check_in_scope,
    check_revision,
    check_updates,
)


class TenMethodsAdapter(MemoryAdapter):
    """Entries by tenant and id. Its two searches are the port's, which refuse."""

    name = "ten methods"

    def __init__(self) -> None:
        self._entries = {}
        self._seq = 0

    async def initialize(self):
        pass

    async def store(self, scope, entry):
        check_entry(entry)
        check_in_scope(scope, entry)
        old = self._entries.get((entry.tenant, entry.id))
        if old is not None:
            check_in_scope(scope, old)
        if old is not None and old.is_expired(entry.created_at):
            del self._entries[entry.tenant, entry.id]
            old = None
        if old is not None:
            entry = entry.replace(seq=old.seq, revision=old.revision + 1)
        else:
            entry = entry.replace(seq=self._seq + 1, revision=max(1, entry.revision))
        self._keep(entry)
        self._seq = max(self._seq, entry.seq)

    async def get(self, scope, id):
        entry = self._entries.get((scope.tenant, id))
        return deepcopy(entry) if entry is not None and scope.admits(entry) else None

    async def update(self, scope, id, updates, *, expected_revision=None):
        check_updates(updates)
        entry = await self.get(scope, id)
        if entry is None:
            return False
        check_revision(entry, expected_revision)
        changed = entry.replace(**updates, revision=entry.revision + (not updates.keys() <= UNREVISED_FIELDS))
        check_entry(changed)
        check_in_scope(scope, changed)
        self._keep(changed)
        return True

    async def delete(self, scope, id, *, expected_revision=None):
        entry = await self.get(scope, id)
        if entry is None:
            return False
        check_revision(entry, expected_revision)
        del self._entries[scope.tenant, id]
        return True

    async def list(self, options: ListOptions):
        if options.filter.where is not None:
            raise Unsupported(f"The {self.name} adapter", Capability.FILTER)
        found = [each for each in self._entries.values() if options.filter.admits(options.scope, each)]
        if options.order is Order.RELEVANCE:
            found.sort(key=lambda entry: entry.id)
            found.sort(key=lambda entry: (entry.relevance, entry.created_at), reverse=True)
        found = [entry for entry in found if entry.seq > (options.after or 0)]
        page = deepcopy(found[options.offset : options.offset + options.limit])
        return page if options.include_embeddings else [entry.replace(embedding=None) for entry in page]

    async def count(self, scope, filter):
        return len(await self.list(ListOptions(scope=scope, filter=filter, limit=len(self._entries) + 1)))

    async def close(self):
        pass

    def _keep(self, entry):
        for other in self._entries.values() if entry.embedding is not None else ():
            if other.tenant == entry.tenant and other.embedding is not None:
                if len(other.embedding) != len(entry.embedding):
                    raise EmbeddingDimensionError(len(other.embedding), len(entry.embedding))
                break
        instants = ("created_at", "updated_at", "last_accessed_at", "expires_at", "occurred_at", "valid_until")
        times = {name: time.astimezone(UTC) for name in instants if (time := getattr(entry, name)) is not None}
        self._entries[entry.tenant, entry.id] = deepcopy(entry.replace(**times))

-- Version 1 of the packs. docs/file-format.md tells why each table is as it is.

CREATE TABLE lamina_pack_heads (
    key INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    owner TEXT,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    status TEXT NOT NULL,
    description TEXT NOT NULL,
    tags TEXT NOT NULL,
    metadata TEXT NOT NULL,
    decay TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    revision INTEGER NOT NULL DEFAULT 1,
    fingerprint TEXT,
    UNIQUE (tenant, id)
) STRICT;

CREATE UNIQUE INDEX lamina_pack_names_of_owners ON lamina_pack_heads (tenant, owner, name)
    WHERE owner IS NOT NULL AND status <> 'deleted';

CREATE UNIQUE INDEX lamina_pack_names_shared ON lamina_pack_heads (tenant, name)
    WHERE owner IS NULL AND status <> 'deleted';

CREATE TABLE lamina_pack_vectors (
    pack INTEGER PRIMARY KEY REFERENCES lamina_pack_heads (key),
    vector BLOB NOT NULL
) STRICT;

CREATE TABLE lamina_pack_memories (
    key INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    pack INTEGER NOT NULL REFERENCES lamina_pack_heads (key),
    memory_type TEXT NOT NULL,
    name TEXT,
    source TEXT NOT NULL,
    confidence REAL NOT NULL,
    provenance TEXT,
    tags TEXT NOT NULL,
    metadata TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    last_accessed INTEGER,
    access_count INTEGER NOT NULL DEFAULT 0,
    superseded_by TEXT,
    tier TEXT NOT NULL,
    tier_since INTEGER,
    pinned_at INTEGER,
    expires_at INTEGER,
    is_deleted INTEGER NOT NULL DEFAULT 0,
    revision INTEGER NOT NULL DEFAULT 1,
    projected INTEGER NOT NULL DEFAULT 0 CHECK (projected <= revision),
    due_at INTEGER,
    UNIQUE (tenant, id)
) STRICT;

CREATE INDEX lamina_pack_memories_in_order ON lamina_pack_memories (pack, key);

CREATE INDEX lamina_pack_memories_by_access ON lamina_pack_memories (pack, last_accessed DESC, key DESC);

CREATE UNIQUE INDEX lamina_pack_memories_names ON lamina_pack_memories (pack, name)
    WHERE name IS NOT NULL AND superseded_by IS NULL AND is_deleted = 0;

CREATE INDEX lamina_pack_memories_due ON lamina_pack_memories (tenant, due_at, id) WHERE due_at IS NOT NULL;

CREATE INDEX lamina_pack_memories_unprojected ON lamina_pack_memories (tenant, id) WHERE projected < revision;

CREATE TABLE lamina_pack_relations (
    source INTEGER NOT NULL REFERENCES lamina_pack_memories (key),
    position INTEGER NOT NULL,
    type TEXT NOT NULL,
    target INTEGER NOT NULL REFERENCES lamina_pack_memories (key),
    PRIMARY KEY (source, position)
) STRICT, WITHOUT ROWID;

CREATE INDEX lamina_pack_relations_by_target ON lamina_pack_relations (target);

CREATE TABLE lamina_pack_originals (
    memory INTEGER PRIMARY KEY REFERENCES lamina_pack_memories (key),
    content BLOB NOT NULL
) STRICT;

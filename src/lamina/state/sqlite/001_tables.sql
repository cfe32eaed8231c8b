-- Version 1 of the state. docs/file-format.md tells why each table is as it is.

CREATE TABLE lamina_threads (
    key INTEGER PRIMARY KEY CHECK (key < 2147483648),
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    owner TEXT,
    namespace TEXT,
    status TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    last_index INTEGER NOT NULL DEFAULT 0 CHECK (last_index < 2147483648),
    folded_through INTEGER NOT NULL DEFAULT 0 CHECK (folded_through BETWEEN 0 AND last_index),
    live_count INTEGER NOT NULL DEFAULT 0 CHECK (live_count >= 0),
    live_tokens INTEGER NOT NULL DEFAULT 0 CHECK (live_tokens >= 0),
    revision INTEGER NOT NULL DEFAULT 1,
    metadata TEXT NOT NULL,
    UNIQUE (tenant, kind, id)
) STRICT;

CREATE INDEX lamina_threads_by_activity ON lamina_threads (tenant, kind, updated_at DESC, id);

CREATE INDEX lamina_threads_by_owner ON lamina_threads (tenant, kind, owner, updated_at DESC, id);

CREATE TABLE lamina_messages (
    key INTEGER PRIMARY KEY,
    thread INTEGER NOT NULL REFERENCES lamina_threads (key),
    id TEXT NOT NULL,
    role TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    counter TEXT NOT NULL,
    state TEXT NOT NULL,
    message TEXT NOT NULL,
    UNIQUE (thread, id),
    CHECK (thread = key >> 32)
) STRICT;

CREATE INDEX lamina_messages_of_system ON lamina_messages (thread, key) WHERE role = 'system';

CREATE TABLE lamina_summaries (
    thread INTEGER NOT NULL REFERENCES lamina_threads (key),
    number INTEGER NOT NULL,
    folded_before INTEGER NOT NULL,
    from_index INTEGER NOT NULL,
    to_index INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    source TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    topics TEXT NOT NULL,
    facts TEXT NOT NULL,
    form TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (thread, number)
) STRICT;

CREATE TABLE lamina_documents (
    key INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    source TEXT NOT NULL,
    owner TEXT,
    ingested_at INTEGER NOT NULL,
    digest TEXT NOT NULL,
    chunks INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    options TEXT NOT NULL,
    metadata TEXT NOT NULL,
    UNIQUE (tenant, id)
) STRICT;

CREATE INDEX lamina_documents_by_source ON lamina_documents (tenant, source, id);

CREATE INDEX lamina_documents_by_owner ON lamina_documents (tenant, owner, source, id);

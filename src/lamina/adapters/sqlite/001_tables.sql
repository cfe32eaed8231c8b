-- Version 1 of a collection. docs/file-format.md tells why each table is as it is.
-- The text index, a virtual table, is made in code: what it can do depends on the SQLite at hand.

CREATE TABLE {partitions} (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    namespace TEXT NOT NULL,
    layer TEXT NOT NULL,
    last INTEGER NOT NULL DEFAULT 0 CHECK (last < 4294967296),
    vectors INTEGER NOT NULL DEFAULT 0 CHECK (vectors >= 0),
    dimensions INTEGER NOT NULL DEFAULT 0,
    UNIQUE (tenant, owner, namespace, layer)
) STRICT;

CREATE INDEX {partitions_with_vectors} ON {partitions} (tenant) WHERE vectors > 0;

CREATE TABLE {memories} (
    key INTEGER PRIMARY KEY,
    partition INTEGER NOT NULL REFERENCES {partitions} (id),
    seq INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    digest BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    last_accessed_at INTEGER,
    occurred_at INTEGER,
    valid_until INTEGER,
    access_count INTEGER NOT NULL,
    relevance REAL NOT NULL,
    base_relevance REAL NOT NULL,
    confidence REAL NOT NULL,
    ttl REAL,
    trust TEXT NOT NULL,
    source TEXT,
    superseded_by TEXT,
    tags TEXT NOT NULL,
    derived_from TEXT NOT NULL,
    metadata TEXT NOT NULL,
    content TEXT NOT NULL,
    UNIQUE (tenant, id),
    CHECK (partition = key >> 32)
) STRICT;

CREATE UNIQUE INDEX {memories_by_seq} ON {memories} (partition, seq);

CREATE UNIQUE INDEX {memories_by_tenant_seq} ON {memories} (tenant, seq);

CREATE INDEX {memories_by_digest} ON {memories} (partition, digest);

CREATE INDEX {memories_by_expiry} ON {memories} (partition, expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE {vectors} (
    key INTEGER PRIMARY KEY REFERENCES {memories} (key),
    block INTEGER,
    slot INTEGER,
    data BLOB NOT NULL
) STRICT;

CREATE INDEX {vectors_loose} ON {vectors} (key) WHERE block IS NULL;

CREATE TABLE {blocks} (
    key INTEGER PRIMARY KEY,
    live INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT;

CREATE TABLE {history} (
    seq INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    entry TEXT NOT NULL,
    PRIMARY KEY (seq, revision)
) STRICT;

CREATE TABLE {meta} (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    saved_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE {counters} (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO {counters} (name, value) VALUES ('seq', 0), ('analyzer', 0);

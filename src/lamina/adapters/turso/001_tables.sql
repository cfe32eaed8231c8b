-- Version 1 of a collection. Tables of vectors are made when a length of vectors first comes.

CREATE TABLE {memories} (
    seq INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    owner TEXT NOT NULL,
    namespace TEXT NOT NULL,
    layer TEXT NOT NULL,
    digest TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    relevance REAL NOT NULL,
    confidence REAL NOT NULL,
    dimensions INTEGER,
    tags TEXT NOT NULL,
    metadata TEXT NOT NULL,
    entry TEXT NOT NULL,
    embedding BLOB,
    UNIQUE (tenant, id)
);

CREATE INDEX {by_place} ON {memories} (tenant, owner, namespace, layer, expires_at);

CREATE INDEX {by_tenant} ON {memories} (tenant);

CREATE INDEX {by_shared} ON {memories} (tenant) WHERE {shared};

CREATE INDEX {by_digest} ON {memories} (tenant, digest);

-- The terms are made by lamina.domain.lexical; `ascii` splits them where they are joined, at the spaces.
CREATE VIRTUAL TABLE {text} USING fts5 (place, terms, tokenize = 'ascii');

INSERT INTO {text} ({text}, rank) VALUES ('secure-delete', 1);

CREATE TABLE {history} (
    number INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,
    entry TEXT NOT NULL
);

CREATE INDEX {history_by_seq} ON {history} (seq);

CREATE TABLE {controls} (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) WITHOUT ROWID;

CREATE TABLE {counters} (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

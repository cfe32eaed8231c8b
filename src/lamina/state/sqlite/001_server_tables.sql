-- Version 1 of the server's state. docs/file-format.md tells why each table is as it is.

CREATE TABLE lamina_server_tokens (
    id TEXT PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    owner TEXT,
    scopes TEXT NOT NULL,
    label TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    last_used_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX lamina_server_tokens_by_age ON lamina_server_tokens (created_at DESC, id);

CREATE INDEX lamina_server_tokens_by_tenant ON lamina_server_tokens (tenant, created_at DESC, id);

CREATE TABLE lamina_server_requests (
    tenant TEXT NOT NULL,
    caller TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    claim TEXT NOT NULL,
    begun_at INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    status INTEGER,
    headers TEXT,
    body BLOB,
    PRIMARY KEY (tenant, caller, key),
    CHECK ((status IS NULL) = (headers IS NULL) AND (status IS NULL) = (body IS NULL))
) STRICT;

CREATE INDEX lamina_server_requests_by_age ON lamina_server_requests (begun_at);

CREATE TABLE lamina_server_leases (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE lamina_server_tenants (
    name TEXT PRIMARY KEY,
    since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

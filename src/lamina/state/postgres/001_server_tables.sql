-- Version 1 of the server's state in a schema. docs/postgres.md tells why each table is as it is.
-- Texts that are sorted by have the collation C, by code points, so that every server sorts alike.

CREATE TABLE {schema}.server_tokens (
    id text COLLATE "C" PRIMARY KEY,
    digest text COLLATE "C" NOT NULL UNIQUE,
    tenant text COLLATE "C" NOT NULL,
    owner text COLLATE "C",
    scopes text[] NOT NULL,
    label text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz
);

CREATE INDEX server_tokens_by_age ON {schema}.server_tokens (created_at DESC, id);

CREATE INDEX server_tokens_by_tenant ON {schema}.server_tokens (tenant, created_at DESC, id);

CREATE TABLE {schema}.server_requests (
    tenant text COLLATE "C" NOT NULL,
    caller text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,
    claim text NOT NULL,
    begun_at timestamptz NOT NULL,
    lease_until timestamptz NOT NULL,
    status integer,
    headers json,
    body bytea,
    PRIMARY KEY (tenant, caller, key),
    CHECK ((status IS NULL) = (headers IS NULL) AND (status IS NULL) = (body IS NULL))
);

CREATE INDEX server_requests_by_age ON {schema}.server_requests (begun_at);

CREATE TABLE {schema}.server_leases (
    name text COLLATE "C" PRIMARY KEY,
    holder text COLLATE "C" NOT NULL,
    until timestamptz NOT NULL
);

CREATE TABLE {schema}.server_tenants (
    name text COLLATE "C" PRIMARY KEY,
    since timestamptz NOT NULL
);

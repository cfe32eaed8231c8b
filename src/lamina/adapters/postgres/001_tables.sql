-- Version 1 of a collection of memories. docs/adapter-postgres.md tells why each table is as it is.
-- Names and ids have the collation C, by code points, so that every server sorts and compares alike.

CREATE TABLE {tenants} (
    key integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    last_seq bigint NOT NULL DEFAULT 0,
    dimensions integer
);

CREATE TABLE {memories} (
    tenant integer NOT NULL REFERENCES {tenants} (key) ON DELETE CASCADE,
    seq bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    layer text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    digest bytea NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    expires_at timestamptz,
    last_accessed_at timestamptz,
    occurred_at timestamptz,
    valid_until timestamptz,
    access_count bigint NOT NULL,
    relevance double precision NOT NULL,
    base_relevance double precision NOT NULL,
    confidence double precision NOT NULL,
    ttl double precision,
    trust text NOT NULL,
    source text,
    superseded_by text,
    tags text[] NOT NULL,
    derived_from text[] NOT NULL,
    metadata jsonb NOT NULL,
    metadata_text text NOT NULL,
    content text NOT NULL,
    PRIMARY KEY (tenant, seq),
    UNIQUE (tenant, id)
) WITH (fillfactor = 85);

CREATE INDEX {by_owner} ON {memories} (tenant, owner, seq);

-- Beside the one by owner, for "this owner's, and what the tenant's owners share".
CREATE INDEX {by_shared} ON {memories} (tenant, seq) WHERE layer IN ('global', 'organizational');

CREATE INDEX {by_digest} ON {memories} (tenant, digest);

CREATE INDEX {by_expiry} ON {memories} (tenant, expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE {words} (
    tenant integer NOT NULL,
    seq bigint NOT NULL,
    words bigint[] NOT NULL,
    PRIMARY KEY (tenant, seq),
    FOREIGN KEY (tenant, seq) REFERENCES {memories} (tenant, seq) ON DELETE CASCADE
);

CREATE INDEX {words_by_word} ON {words} USING gin (words);

CREATE TABLE {vectors} (
    tenant integer NOT NULL,
    seq bigint NOT NULL,
    dimensions integer NOT NULL,
    exact real[] NOT NULL,
    PRIMARY KEY (tenant, seq),
    FOREIGN KEY (tenant, seq) REFERENCES {memories} (tenant, seq) ON DELETE CASCADE
);

ALTER TABLE {vectors} ALTER COLUMN exact SET STORAGE EXTERNAL;

CREATE TABLE {history} (
    tenant integer NOT NULL,
    seq bigint NOT NULL,
    revision bigint NOT NULL,
    entry json NOT NULL,
    PRIMARY KEY (tenant, seq, revision),
    FOREIGN KEY (tenant, seq) REFERENCES {memories} (tenant, seq) ON DELETE CASCADE
);

CREATE TABLE {meta} (
    tenant integer NOT NULL REFERENCES {tenants} (key) ON DELETE CASCADE,
    key text COLLATE "C" NOT NULL,
    value text NOT NULL,
    saved_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, key)
);

-- The second wall: whatever a statement asks for, a role that is no superuser gets one tenant's rows.
-- The words have none, since no GIN index is used under a policy; they are hashes that hold the tenant's name.

ALTER TABLE {tenants} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON {tenants} USING (name = current_setting('lamina.tenant', true));

ALTER TABLE {memories} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON {memories} USING (tenant = {set_tenant});

ALTER TABLE {vectors} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON {vectors} USING (tenant = {set_tenant});

ALTER TABLE {history} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON {history} USING (tenant = {set_tenant});

ALTER TABLE {meta} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON {meta} USING (tenant = {set_tenant});

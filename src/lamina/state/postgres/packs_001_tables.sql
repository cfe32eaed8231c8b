-- Version 1 of the packs in a schema. docs/postgres.md tells why each table is as it is.
-- Each row says its tenant, and row-level security lets a transaction see those of the tenant that it is for.

CREATE TABLE {schema}.pack_heads (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    owner text COLLATE "C",
    name text COLLATE "C" NOT NULL,
    type text NOT NULL,
    status text NOT NULL,
    description text NOT NULL,
    tags text[] COLLATE "C" NOT NULL,
    metadata json NOT NULL,
    decay json,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    revision bigint NOT NULL DEFAULT 1,
    fingerprint text,
    UNIQUE (tenant, id)
);

CREATE UNIQUE INDEX pack_names_of_owners ON {schema}.pack_heads (tenant, owner, name)
    WHERE owner IS NOT NULL AND status <> 'deleted';

CREATE UNIQUE INDEX pack_names_shared ON {schema}.pack_heads (tenant, name)
    WHERE owner IS NULL AND status <> 'deleted';

CREATE TABLE {schema}.pack_vectors (
    pack bigint PRIMARY KEY REFERENCES {schema}.pack_heads (key) ON DELETE CASCADE,
    tenant text COLLATE "C" NOT NULL,
    vector bytea NOT NULL
);

CREATE TABLE {schema}.pack_memories (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    pack bigint NOT NULL REFERENCES {schema}.pack_heads (key),
    memory_type text NOT NULL,
    name text COLLATE "C",
    source text NOT NULL,
    confidence double precision NOT NULL,
    provenance text,
    tags text[] COLLATE "C" NOT NULL,
    metadata json NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    last_accessed timestamptz,
    access_count bigint NOT NULL DEFAULT 0,
    superseded_by text COLLATE "C",
    tier text NOT NULL,
    tier_since timestamptz,
    pinned_at timestamptz,
    expires_at timestamptz,
    is_deleted boolean NOT NULL DEFAULT false,
    revision bigint NOT NULL DEFAULT 1,
    projected bigint NOT NULL DEFAULT 0 CHECK (projected <= revision),
    due_at timestamptz,
    UNIQUE (tenant, id)
);

CREATE INDEX pack_memories_in_order ON {schema}.pack_memories (pack, key);

CREATE INDEX pack_memories_by_access ON {schema}.pack_memories (pack, last_accessed DESC NULLS LAST, key DESC);

CREATE UNIQUE INDEX pack_memories_names ON {schema}.pack_memories (pack, name)
    WHERE name IS NOT NULL AND superseded_by IS NULL AND NOT is_deleted;

CREATE INDEX pack_memories_due ON {schema}.pack_memories (tenant, due_at, id) WHERE due_at IS NOT NULL;

CREATE INDEX pack_memories_unprojected ON {schema}.pack_memories (tenant, id) WHERE projected < revision;

CREATE TABLE {schema}.pack_relations (
    source bigint NOT NULL REFERENCES {schema}.pack_memories (key) ON DELETE CASCADE,
    position integer NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    type text NOT NULL,
    target bigint NOT NULL REFERENCES {schema}.pack_memories (key) ON DELETE CASCADE,
    PRIMARY KEY (source, position)
);

CREATE INDEX pack_relations_by_target ON {schema}.pack_relations (target);

CREATE TABLE {schema}.pack_originals (
    memory bigint PRIMARY KEY REFERENCES {schema}.pack_memories (key) ON DELETE CASCADE,
    tenant text COLLATE "C" NOT NULL,
    content bytea NOT NULL
);

ALTER TABLE {schema}.pack_originals ALTER COLUMN content SET STORAGE EXTERNAL;

ALTER TABLE {schema}.pack_heads ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON {schema}.pack_heads USING (tenant = current_setting('lamina.tenant', true));
CREATE POLICY of_all ON {schema}.pack_heads FOR SELECT USING (current_setting('lamina.all_tenants', true) = 'yes');

ALTER TABLE {schema}.pack_vectors ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON {schema}.pack_vectors USING (tenant = current_setting('lamina.tenant', true));

ALTER TABLE {schema}.pack_memories ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON {schema}.pack_memories USING (tenant = current_setting('lamina.tenant', true));

ALTER TABLE {schema}.pack_relations ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON {schema}.pack_relations USING (tenant = current_setting('lamina.tenant', true));

ALTER TABLE {schema}.pack_originals ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON {schema}.pack_originals USING (tenant = current_setting('lamina.tenant', true));

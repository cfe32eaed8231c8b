-- Version 1 of the state in a schema. docs/postgres.md tells why each table is as it is.
-- Texts that are sorted by have the collation C, by code points, so that every server sorts alike.
-- JSON is kept as json, not as jsonb, which would change the order of keys and the form of numbers.

CREATE TABLE {schema}.tenants (
    key integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE
);

CREATE TABLE {schema}.threads (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant integer NOT NULL REFERENCES {schema}.tenants (key),
    kind text NOT NULL,
    id text COLLATE "C" NOT NULL,
    owner text COLLATE "C",
    namespace text COLLATE "C",
    status text NOT NULL,
    metadata json NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    last_index integer NOT NULL DEFAULT 0 CHECK (last_index >= 0),
    folded_through integer NOT NULL DEFAULT 0 CHECK (folded_through BETWEEN 0 AND last_index),
    live_count bigint NOT NULL DEFAULT 0 CHECK (live_count >= 0),
    live_tokens bigint NOT NULL DEFAULT 0 CHECK (live_tokens >= 0),
    revision bigint NOT NULL DEFAULT 1,
    UNIQUE (tenant, kind, id)
);

CREATE INDEX threads_by_activity ON {schema}.threads (tenant, kind, updated_at DESC);

CREATE INDEX threads_by_owner ON {schema}.threads (tenant, kind, owner, updated_at DESC);

CREATE TABLE {schema}.messages (
    thread bigint NOT NULL REFERENCES {schema}.threads (key) ON DELETE CASCADE,
    index integer NOT NULL,
    id text COLLATE "C" NOT NULL,
    role text NOT NULL,
    tokens bigint NOT NULL,
    counter text NOT NULL,
    message json NOT NULL,
    state json NOT NULL,
    PRIMARY KEY (thread, index),
    UNIQUE (thread, id)
);

CREATE INDEX messages_of_system ON {schema}.messages (thread, index) WHERE role = 'system';

CREATE TABLE {schema}.summaries (
    number bigint GENERATED ALWAYS AS IDENTITY,
    thread bigint NOT NULL REFERENCES {schema}.threads (key) ON DELETE CASCADE,
    folded_before integer NOT NULL,
    from_index integer NOT NULL,
    to_index integer NOT NULL,
    created_at timestamptz NOT NULL,
    source text NOT NULL,
    text text NOT NULL,
    topics json NOT NULL,
    facts json NOT NULL,
    form json NOT NULL,
    tokens bigint NOT NULL,
    PRIMARY KEY (thread, number)
);

CREATE TABLE {schema}.documents (
    tenant integer NOT NULL REFERENCES {schema}.tenants (key),
    id text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    owner text COLLATE "C",
    ingested_at timestamptz NOT NULL,
    metadata json NOT NULL,
    digest text NOT NULL,
    options json NOT NULL,
    chunks bigint NOT NULL,
    generation bigint NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX documents_by_source ON {schema}.documents (tenant, source);

-- Lamina's memories on Supabase: the tables, functions and policies of the collection {table}.
-- To be run whole, by the owner of the database; it may be run again, and then changes nothing that is kept.

SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('lamina {schema}.{table}', 0));

DO $setup$
DECLARE
    stored integer;
BEGIN
    IF to_regclass('"{schema}"."{table}__state"') IS NOT NULL THEN
        EXECUTE 'SELECT version FROM "{schema}"."{table}__state"' INTO stored;
        IF stored > {version} THEN
            RAISE EXCEPTION 'the collection {table} was made by a newer Lamina' USING ERRCODE = 'LM002';
        END IF;
    ELSIF to_regclass('"{schema}"."{table}"') IS NOT NULL THEN
        RAISE EXCEPTION 'there is a table {table} that Lamina did not make' USING ERRCODE = 'LM003';
    END IF;
    IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'vector') THEN
        IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'extensions') THEN
            CREATE SCHEMA extensions;
        END IF;
        CREATE EXTENSION vector WITH SCHEMA extensions;
    END IF;
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'vector'
        AND string_to_array(extversion, '.')::integer[] < ARRAY[0, 8])
    THEN
        RAISE EXCEPTION 'pgvector 0.8 or newer is needed: ALTER EXTENSION vector UPDATE' USING ERRCODE = 'LM004';
    END IF;
END $setup$;

SELECT pg_catalog.set_config('search_path', '{search_path}', true);

-- Tables ------------------------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS "{schema}"."{table}__state" (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version integer NOT NULL,
    seq bigint NOT NULL DEFAULT 0
);

-- Names may be longer than what an index takes, so rows are found by their hashes. No index has what fading and reading
-- change, and pages have some room left: so those updates touch no index, least of all that of vectors.
CREATE TABLE IF NOT EXISTS "{schema}"."{table}" (
    tenant_key bytea NOT NULL,
    id_key bytea NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    layer text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    version bigint NOT NULL,
    digest text COLLATE "C" NOT NULL,
    entry text NOT NULL, -- the memory itself, as exact JSON; all the rest is there to find it by
    metadata jsonb NOT NULL,
    tags text[] COLLATE "C" NOT NULL,
    terms text[] COLLATE "C" NOT NULL,
    relevance double precision NOT NULL,
    confidence double precision NOT NULL,
    created_at bigint NOT NULL, -- microseconds since 1970, as all times here
    updated_at bigint NOT NULL,
    expires_at bigint,
    embedding bytea, -- exact, as 32-bit floats
    direction vector, -- of length one; none for a zero vector
    dimensions integer,
    PRIMARY KEY (tenant_key, id_key)
) WITH (fillfactor = 75);
ALTER TABLE "{schema}"."{table}" ALTER COLUMN embedding SET STORAGE EXTERNAL;

-- Since version 2: from when on it is not current, for what is superseded the beginning of time; none for never.
ALTER TABLE "{schema}"."{table}" ADD COLUMN IF NOT EXISTS current_until bigint GENERATED ALWAYS AS (
    CASE WHEN entry::json ->> 'superseded_by' IS NULL THEN (entry::json ->> 'valid_until')::bigint
    ELSE -9223372036854775808 END) STORED;

CREATE INDEX IF NOT EXISTS "{table}__by_seq" ON "{schema}"."{table}" (tenant_key, seq);
CREATE INDEX IF NOT EXISTS "{table}__by_digest" ON "{schema}"."{table}" (tenant_key, digest);
CREATE INDEX IF NOT EXISTS "{table}__by_term" ON "{schema}"."{table}" USING gin (terms);
CREATE INDEX IF NOT EXISTS "{table}__by_tag" ON "{schema}"."{table}" USING gin (tags);
CREATE INDEX IF NOT EXISTS "{table}__by_metadata" ON "{schema}"."{table}" USING gin (metadata jsonb_path_ops);

CREATE TABLE IF NOT EXISTS "{schema}"."{table}__history" (
    tenant_key bytea NOT NULL,
    id_key bytea NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    entry text NOT NULL,
    PRIMARY KEY (tenant_key, id_key, number),
    FOREIGN KEY (tenant_key, id_key) REFERENCES "{schema}"."{table}" ON DELETE CASCADE
);

CREATE TABLE IF NOT EXISTS "{schema}"."{table}__controls" (
    tenant_key bytea NOT NULL,
    name text COLLATE "C" NOT NULL,
    value text NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (tenant_key, name)
);

-- Commits of the last hour, so that one whose answer was lost may be sent again.
CREATE TABLE IF NOT EXISTS "{schema}"."{table}__commits" (
    token uuid PRIMARY KEY,
    at timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS "{table}__commits_by_time" ON "{schema}"."{table}__commits" (at);

CREATE SEQUENCE IF NOT EXISTS "{schema}"."{table}__versions";

-- Who may reach what ------------------------------------------------------------------------

-- The key of the tenant, if the caller may reach it: a service key reaches all, a user the tenant of the token.
CREATE OR REPLACE FUNCTION "{schema}"."{table}__admit"(p_tenant text) RETURNS bytea
LANGUAGE plpgsql STABLE SET search_path = {search_path} AS $body$
DECLARE
    claims jsonb := coalesce(nullif(current_setting('request.jwt.claims', true), ''), '{}')::jsonb;
BEGIN
    IF coalesce(p_tenant, '') = '' THEN
        RAISE EXCEPTION 'a tenant is needed' USING ERRCODE = '22023';
    END IF;
    IF current_setting('role', true) IS DISTINCT FROM 'service_role'
        AND coalesce(claims ->> 'tenant', claims -> 'app_metadata' ->> 'tenant') IS DISTINCT FROM p_tenant
    THEN
        RAISE EXCEPTION 'the token does not reach this tenant' USING ERRCODE = '42501', DETAIL = 'lamina:tenant';
    END IF;
    RETURN sha256(convert_to(p_tenant, 'UTF8'));
END $body$;

-- Conditions --------------------------------------------------------------------------------

-- A condition on metadata as SQL over `m` and the query `$1`. Nothing of the condition itself gets into the text:
-- keys and operands are read from `$1`, at the place where they stand in it.
CREATE OR REPLACE FUNCTION "{schema}"."{table}__where"(node jsonb, place text[]) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = {search_path} AS $body$
DECLARE
    operator text := node ->> 'operator';
    operand text := format('($1 #> %L)', array_append(place, 'operand'));
    value text := 'm.metadata';
    inside text := operand;
    parts text[];
    kind text;
    sign text;
    key text;
BEGIN
    IF operator IN ('and', 'or') THEN
        SELECT array_agg("{schema}"."{table}__where"(each.part, place || ARRAY['parts', (each.number - 1)::text]))
        INTO parts FROM jsonb_array_elements(node -> 'parts') WITH ORDINALITY AS each (part, number);
        RETURN CASE WHEN parts IS NOT NULL THEN '(' || array_to_string(parts, ' ' || operator || ' ') || ')'
            WHEN operator = 'and' THEN 'true' ELSE 'false' END;
    ELSIF operator = 'not' THEN
        RETURN '(NOT ' || "{schema}"."{table}__where"(node -> 'part', array_append(place, 'part')) || ')';
    END IF;
    FOR step IN 0 .. jsonb_array_length(node -> 'path') - 1 LOOP
        key := format('($1 #>> %L)', place || ARRAY['path', step::text]);
        value := format('(%s -> %s)', value, key); -- enters objects only
    END LOOP;
    FOR step IN REVERSE jsonb_array_length(node -> 'path') - 1 .. 0 LOOP
        key := format('($1 #>> %L)', place || ARRAY['path', step::text]);
        inside := format('jsonb_build_object(%s, %s)', key, inside);
    END LOOP;
    CASE operator
        WHEN 'exists' THEN
            RETURN format('(%s IS %s)', value, CASE WHEN node -> 'operand' = 'true' THEN 'NOT NULL' ELSE 'NULL' END);
        WHEN 'eq' THEN -- the first part is implied by the second, and has an index
            RETURN format('(m.metadata @> %s AND coalesce(%s = %s, false))', inside, value, operand);
        WHEN 'ne' THEN
            RETURN format('coalesce(%s <> %s, false)', value, operand);
        WHEN 'in' THEN
            RETURN format('coalesce(%s = ANY (ARRAY(SELECT jsonb_array_elements(%s))), false)', value, operand);
        WHEN 'not_in' THEN
            RETURN format(
                '(%1$s IS NOT NULL AND %1$s <> ALL (ARRAY(SELECT jsonb_array_elements(%2$s))))', value, operand);
        WHEN 'contains' THEN
            kind := CASE WHEN jsonb_typeof(node -> 'operand') = 'string'
                THEN format('strpos(%s #>> ''{}'', %s #>> ''{}'') > 0', value, operand) ELSE 'false' END;
            RETURN format(
                '(CASE jsonb_typeof(%1$s) WHEN ''array'' THEN %1$s @> jsonb_build_array(%2$s)'
                ' WHEN ''string'' THEN %3$s ELSE false END)', value, operand, kind);
        ELSE
            kind := jsonb_typeof(node -> 'operand');
            sign := CASE operator WHEN 'gt' THEN '>' WHEN 'gte' THEN '>=' WHEN 'lt' THEN '<' WHEN 'lte' THEN '<=' END;
            IF sign IS NULL OR kind NOT IN ('number', 'string') THEN
                RAISE EXCEPTION 'there is no such condition' USING ERRCODE = '22023';
            END IF;
            RETURN format(
                CASE kind WHEN 'number' THEN
                    '(CASE jsonb_typeof(%1$s) WHEN ''number'' THEN %1$s::numeric %3$s %2$s::numeric ELSE false END)'
                ELSE
                    '(CASE jsonb_typeof(%1$s) WHEN ''string'''
                    ' THEN (%1$s #>> ''{}'') COLLATE "C" %3$s (%2$s #>> ''{}'') ELSE false END)'
                END, value, operand, sign);
    END CASE;
END $body$;

-- What a query asks of a memory `m`, as SQL over the query `$1`. Refuses a tenant out of the caller's reach.
CREATE OR REPLACE FUNCTION "{schema}"."{table}__condition"(q jsonb) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = {search_path} AS $body$
DECLARE
    parts text[] := ARRAY[
        'm.tenant_key = sha256(convert_to($1 ->> ''tenant'', ''UTF8''))', 'm.tenant = $1 ->> ''tenant'''];
    -- Each is asked if the query has a value of this name.
    asked jsonb := jsonb_build_object(
        'owner', CASE WHEN q -> 'shared' = 'true'
            THEN '(m.owner = $1 ->> ''owner'' OR m.layer IN (''organizational'', ''global''))'
            ELSE 'm.owner = $1 ->> ''owner''' END,
        'namespace', 'm.namespace = $1 ->> ''namespace''',
        'after', 'm.seq > ($1 ->> ''after'')::bigint',
        'live_at', '(m.expires_at IS NULL OR m.expires_at > ($1 ->> ''live_at'')::bigint)',
        'current_at', '(m.current_until IS NULL OR m.current_until > ($1 ->> ''current_at'')::bigint)',
        'expired_at', 'm.expires_at <= ($1 ->> ''expired_at'')::bigint',
        'layers', 'm.layer = ANY (ARRAY(SELECT jsonb_array_elements_text($1 -> ''layers'')))',
        'digests', 'm.digest = ANY (ARRAY(SELECT jsonb_array_elements_text($1 -> ''digests'')))',
        'tags', 'm.tags @> ARRAY(SELECT jsonb_array_elements_text($1 -> ''tags''))',
        'tags_any', 'm.tags && ARRAY(SELECT jsonb_array_elements_text($1 -> ''tags_any''))',
        'min_relevance', 'm.relevance >= ($1 ->> ''min_relevance'')::double precision',
        'min_confidence', 'm.confidence >= ($1 ->> ''min_confidence'')::double precision',
        'created_before', 'm.created_at < ($1 ->> ''created_before'')::bigint',
        'updated_before', 'm.updated_at < ($1 ->> ''updated_before'')::bigint',
        'has_embedding', CASE WHEN q -> 'has_embedding' = 'true'
            THEN 'm.dimensions IS NOT NULL' ELSE 'm.dimensions IS NULL' END);
BEGIN
    PERFORM "{schema}"."{table}__admit"(q ->> 'tenant');
    SELECT parts || coalesce(array_agg(each.value), '{}') INTO parts
    FROM jsonb_each_text(asked) AS each WHERE q ? each.key;
    IF q ? 'where' THEN
        parts := array_append(parts, "{schema}"."{table}__where"(q -> 'where', ARRAY['where']));
    END IF;
    RETURN '(' || array_to_string(parts, ' AND ') || ')';
END $body$;

-- Reading -----------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION "{schema}"."{table}__version"() RETURNS integer
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {search_path} AS $body$
    SELECT version FROM "{schema}"."{table}__state"
$body$;

CREATE OR REPLACE FUNCTION "{schema}"."{table}__load"(p_tenant text, p_ids text[]) RETURNS json
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = {search_path} AS $body$
DECLARE
    wanted bytea := "{schema}"."{table}__admit"(p_tenant);
BEGIN
    RETURN (
        SELECT coalesce(json_agg(json_build_array(m.entry, encode(m.embedding, 'base64'), m.version)), '[]')
        FROM "{schema}"."{table}" AS m
        WHERE m.tenant_key = wanted AND m.tenant = p_tenant
            AND m.id_key = ANY (ARRAY(SELECT sha256(convert_to(id, 'UTF8')) FROM unnest(p_ids) AS id)));
END $body$;

CREATE OR REPLACE FUNCTION "{schema}"."{table}__load_controls"(p_tenant text, p_names text[]) RETURNS json
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = {search_path} AS $body$
DECLARE
    wanted bytea := "{schema}"."{table}__admit"(p_tenant);
BEGIN
    RETURN (
        SELECT coalesce(json_agg(json_build_array(c.name, c.value, c.version)), '[]')
        FROM "{schema}"."{table}__controls" AS c WHERE c.tenant_key = wanted AND c.name = ANY (p_names));
END $body$;

-- In order of seq, or of relevance, newest first among equals.
CREATE OR REPLACE FUNCTION "{schema}"."{table}__select"(
    p_query jsonb, p_limit bigint, p_offset bigint, p_by_relevance boolean, p_embeddings boolean
) RETURNS json
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = {search_path} AS $body$
DECLARE
    sorted text := CASE WHEN p_by_relevance THEN 'm.relevance DESC, m.created_at DESC, m.id' ELSE 'm.seq' END;
    result json;
BEGIN
    EXECUTE format(
        'SELECT coalesce(json_agg(json_build_array(m.entry, CASE WHEN $4 THEN encode(m.embedding, ''base64'') END,'
        ' m.version) ORDER BY %2$s), ''[]'') FROM'
        ' (SELECT * FROM "{schema}"."{table}" AS m WHERE %1$s ORDER BY %2$s LIMIT $2 OFFSET $3) AS m',
        "{schema}"."{table}__condition"(p_query), sorted)
    INTO result USING p_query, p_limit, p_offset, p_embeddings;
    RETURN result;
END $body$;

CREATE OR REPLACE FUNCTION "{schema}"."{table}__count"(p_query jsonb) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = {search_path} AS $body$
DECLARE
    number bigint;
BEGIN
    EXECUTE format(
        'SELECT count(*) FROM "{schema}"."{table}" AS m WHERE %s', "{schema}"."{table}__condition"(p_query))
    INTO number USING p_query;
    RETURN number;
END $body$;

-- The closest by the stored directions. Up to 20,000 in reach are compared one by one; beyond that the index looks,
-- on and on until it has enough that are admitted, and if it gives up first, they are compared all the same.
CREATE OR REPLACE FUNCTION "{schema}"."{table}__nearest"(
    p_query jsonb, p_direction text, p_dimensions integer, p_limit bigint
) RETURNS json
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = {search_path} AS $body$
DECLARE
    condition text := "{schema}"."{table}__condition"(p_query) || format(' AND m.dimensions = %s', p_dimensions);
    answer text := 'SELECT coalesce(json_agg(json_build_array(f.entry, encode(f.embedding, ''base64''), f.version)),'
        ' ''[]''), count(f.direction) FROM (%s) AS f';
    scan text := format(
        '(SELECT * FROM "{schema}"."{table}" AS m WHERE %s'
        ' ORDER BY coalesce(m.direction <=> $2::vector, 1), m.id LIMIT $3)', condition);
    result json;
    number bigint;
BEGIN
    EXECUTE format('SELECT count(*) FROM (SELECT FROM "{schema}"."{table}" AS m WHERE %s LIMIT 20001) AS reach', condition)
    INTO number USING p_query;
    IF number > 20000 AND p_direction IS NOT NULL AND p_limit <= 1000 THEN
        PERFORM set_config('hnsw.iterative_scan', 'strict_order', true),
            set_config('hnsw.ef_search', greatest(100, least(2 * p_limit, 1000))::text, true),
            set_config('hnsw.max_scan_tuples', '100000', true);
        EXECUTE format(
            answer, format(
                '(SELECT * FROM "{schema}"."{table}" AS m WHERE %1$s'
                ' ORDER BY m.direction::vector(%2$s) <=> $2::vector(%2$s) LIMIT $3)'
                ' UNION ALL (SELECT * FROM "{schema}"."{table}" AS m WHERE %1$s'
                ' AND m.direction IS NULL ORDER BY m.id LIMIT $3)', condition, p_dimensions))
        INTO result, number USING p_query, p_direction, p_limit;
        IF number >= p_limit THEN
            RETURN result;
        END IF;
    END IF;
    EXECUTE format(answer, scan) INTO result, number USING p_query, p_direction, p_limit;
    RETURN result;
END $body$;

-- Those that hold some of the words: most of them and the rarest first, ties by id.
CREATE OR REPLACE FUNCTION "{schema}"."{table}__holding"(
    p_query jsonb, p_words text[], p_limit bigint, p_embeddings boolean
) RETURNS json
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = {search_path} AS $body$
DECLARE
    result json;
BEGIN
    EXECUTE format(
        'WITH pool AS MATERIALIZED ('
        ' SELECT m.tenant_key, m.id_key, m.id, held.word FROM "{schema}"."{table}" AS m'
        ' CROSS JOIN LATERAL (SELECT word FROM unnest($2) AS word WHERE word = ANY (m.terms)) AS held'
        ' WHERE %s AND m.terms && $2),'
        ' words AS (SELECT word, ln(1 + (SELECT count(*) FROM pool) / count(*)::double precision) AS weight'
        ' FROM pool GROUP BY word),'
        ' best AS (SELECT tenant_key, id_key FROM pool JOIN words USING (word) GROUP BY tenant_key, id_key, id'
        ' ORDER BY sum(weight) DESC, id LIMIT $3)'
        ' SELECT coalesce(json_agg(json_build_array(m.entry, CASE WHEN $4 THEN encode(m.embedding, ''base64'') END,'
        ' m.version)), ''[]'') FROM best JOIN "{schema}"."{table}" AS m USING (tenant_key, id_key)',
        "{schema}"."{table}__condition"(p_query))
    INTO result USING p_query, p_words, p_limit, p_embeddings;
    RETURN result;
END $body$;

CREATE OR REPLACE FUNCTION "{schema}"."{table}__frequencies"(p_query jsonb, p_words text[]) RETURNS json
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = {search_path} AS $body$
DECLARE
    result json;
BEGIN
    EXECUTE format(
        'SELECT json_agg((SELECT count(*) FROM "{schema}"."{table}" AS m WHERE %s AND m.terms @> ARRAY[asked.word])'
        ' ORDER BY asked.number) FROM unnest($2) WITH ORDINALITY AS asked (word, number)',
        "{schema}"."{table}__condition"(p_query))
    INTO result USING p_query, p_words;
    RETURN result;
END $body$;

CREATE OR REPLACE FUNCTION "{schema}"."{table}__past"(p_tenant text, p_id text) RETURNS json
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = {search_path} AS $body$
DECLARE
    wanted bytea := "{schema}"."{table}__admit"(p_tenant);
BEGIN
    RETURN (
        SELECT coalesce(json_agg(h.entry ORDER BY h.number), '[]') FROM "{schema}"."{table}__history" AS h
        WHERE h.tenant_key = wanted AND h.id_key = sha256(convert_to(p_id, 'UTF8')));
END $body$;

-- Writing -----------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION "{schema}"."{table}__reserve"(p_number bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {search_path} AS $body$
DECLARE
    first bigint;
BEGIN
    IF p_number NOT BETWEEN 1 AND 1000000 THEN
        RAISE EXCEPTION 'so many cannot be reserved' USING ERRCODE = '22023';
    END IF;
    UPDATE "{schema}"."{table}__state" SET seq = seq + p_number RETURNING seq - p_number + 1 INTO first;
    RETURN first;
END $body$;

-- What becomes of controls. One that was not there must not be put there meanwhile: hence the lock on its name.
CREATE OR REPLACE FUNCTION "{schema}"."{table}__set_controls"(wanted bytea, controls json) RETURNS void
LANGUAGE plpgsql SET search_path = {search_path} AS $body$
DECLARE
    c record;
    is_stale boolean;
BEGIN
    FOR c IN SELECT * FROM json_to_recordset(controls) AS given (name text, old bigint, value text)
        ORDER BY given.name COLLATE "C"
    LOOP
        IF c.old IS NULL THEN
            PERFORM pg_advisory_xact_lock(
                hashtextextended('{schema}.{table} ' || encode(wanted, 'hex') || c.name, 1));
            is_stale := EXISTS (
                SELECT FROM "{schema}"."{table}__controls" AS k WHERE k.tenant_key = wanted AND k.name = c.name);
            IF c.value IS NOT NULL AND NOT is_stale THEN
                INSERT INTO "{schema}"."{table}__controls" (tenant_key, name, value, version)
                VALUES (wanted, c.name, c.value, nextval('"{schema}"."{table}__versions"'));
            END IF;
        ELSIF c.value IS NULL THEN
            PERFORM FROM "{schema}"."{table}__controls" AS k
            WHERE k.tenant_key = wanted AND k.name = c.name AND k.version = c.old FOR UPDATE;
            is_stale := NOT FOUND;
        ELSE
            UPDATE "{schema}"."{table}__controls" AS k
            SET value = c.value, version = nextval('"{schema}"."{table}__versions"')
            WHERE k.tenant_key = wanted AND k.name = c.name AND k.version = c.old;
            is_stale := NOT FOUND;
        END IF;
        IF is_stale THEN
            RAISE EXCEPTION 'stale' USING ERRCODE = 'PT409';
        END IF;
    END LOOP;
END $body$;

-- All of it or nothing, and only if everything is still what it was worked out from. Rows are taken in one order by
-- everybody, so that no two commits wait for each other.
CREATE OR REPLACE FUNCTION "{schema}"."{table}__commit"(
    p_tenant text, p_token uuid, p_changes json, p_controls json
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {search_path} SET statement_timeout = '55s' AS $body$
DECLARE
    wanted bytea := "{schema}"."{table}__admit"(p_tenant);
    c record;
BEGIN
    INSERT INTO "{schema}"."{table}__commits" (token, at) VALUES (p_token, now()) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN false; -- it was done before, and the answer was lost
    END IF;
    DELETE FROM "{schema}"."{table}__commits" WHERE token IN (
        SELECT token FROM "{schema}"."{table}__commits" WHERE at < now() - interval '1 hour'
        ORDER BY at LIMIT 4 FOR UPDATE SKIP LOCKED);
    PERFORM "{schema}"."{table}__set_controls"(wanted, p_controls);
    FOR c IN SELECT *, sha256(convert_to(id, 'UTF8')) AS id_key, nextval('"{schema}"."{table}__versions"') AS version
        FROM json_to_recordset(p_changes) AS given (
            id text, old bigint, entry text, owner text, namespace text, layer text, seq bigint, digest text,
            metadata jsonb, tags text[], terms text[], relevance double precision, confidence double precision,
            created_at bigint, updated_at bigint, expires_at bigint, same_vector boolean, embedding text,
            direction text, dimensions integer, past text[], forgets boolean)
        ORDER BY id_key
    LOOP
        IF c.old IS NULL THEN
            INSERT INTO "{schema}"."{table}" (
                tenant_key, id_key, tenant, id, owner, namespace, layer, seq, version, digest, entry, metadata, tags,
                terms, relevance, confidence, created_at, updated_at, expires_at, embedding, direction, dimensions)
            VALUES (
                wanted, c.id_key, p_tenant, c.id, c.owner, c.namespace, c.layer, c.seq, c.version, c.digest, c.entry,
                c.metadata, c.tags, c.terms, c.relevance, c.confidence, c.created_at, c.updated_at, c.expires_at,
                decode(c.embedding, 'base64'), c.direction::vector, c.dimensions)
            ON CONFLICT DO NOTHING;
        ELSIF c.entry IS NULL THEN
            DELETE FROM "{schema}"."{table}" AS m
            WHERE m.tenant_key = wanted AND m.id_key = c.id_key AND m.version = c.old;
        ELSE
            UPDATE "{schema}"."{table}" AS m SET
                owner = c.owner, namespace = c.namespace, layer = c.layer, seq = c.seq, version = c.version,
                digest = c.digest, entry = c.entry, metadata = c.metadata, tags = c.tags,
                terms = coalesce(c.terms, m.terms), relevance = c.relevance, confidence = c.confidence,
                created_at = c.created_at, updated_at = c.updated_at, expires_at = c.expires_at,
                embedding = CASE WHEN c.same_vector THEN m.embedding ELSE decode(c.embedding, 'base64') END,
                direction = CASE WHEN c.same_vector THEN m.direction ELSE c.direction::vector END,
                dimensions = CASE WHEN c.same_vector THEN m.dimensions ELSE c.dimensions END
            WHERE m.tenant_key = wanted AND m.id_key = c.id_key AND m.version = c.old;
        END IF;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'stale' USING ERRCODE = 'PT409';
        END IF;
        IF c.forgets THEN
            DELETE FROM "{schema}"."{table}__history" AS h WHERE h.tenant_key = wanted AND h.id_key = c.id_key;
        END IF;
        IF c.past IS NOT NULL AND c.entry IS NOT NULL THEN
            INSERT INTO "{schema}"."{table}__history" (tenant_key, id_key, entry)
            SELECT wanted, c.id_key, each.entry FROM unnest(c.past) WITH ORDINALITY AS each (entry, number)
            ORDER BY each.number;
            DELETE FROM "{schema}"."{table}__history" AS h
            WHERE h.tenant_key = wanted AND h.id_key = c.id_key AND h.number <= (
                SELECT old.number FROM "{schema}"."{table}__history" AS old
                WHERE old.tenant_key = wanted AND old.id_key = c.id_key ORDER BY old.number DESC
                OFFSET {kept} LIMIT 1);
        END IF;
    END LOOP;
    RETURN true;
END $body$;

-- The index of vectors of one length. More than 2,000 numbers no index takes: those are compared one by one.
CREATE OR REPLACE FUNCTION "{schema}"."{table}__index"(p_dimensions integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {search_path} SET statement_timeout = '55s' AS $body$
DECLARE
    name text := format('{table}__nearest_%s', p_dimensions);
BEGIN
    IF p_dimensions NOT BETWEEN 1 AND 2000 OR to_regclass(format('%I.%I', '{schema}', name)) IS NOT NULL THEN
        RETURN;
    END IF;
    EXECUTE format(
        'CREATE INDEX %1$I ON "{schema}"."{table}" USING hnsw ((direction::vector(%2$s)) vector_cosine_ops)'
        ' WHERE dimensions = %2$s', name, p_dimensions);
EXCEPTION WHEN duplicate_table OR unique_violation THEN
    NULL; -- somebody else was faster
END $body$;

-- The walls ---------------------------------------------------------------------------------

DO $walls$
DECLARE
    each record;
BEGIN
    FOR each IN SELECT c.relname, c.relkind FROM pg_class AS c WHERE c.relnamespace = '"{schema}"'::regnamespace
        AND (c.relname = '{table}' OR starts_with(c.relname::text, '{table}__')) AND c.relkind IN ('r', 'S')
    LOOP
        EXECUTE format('REVOKE ALL ON %I.%I FROM PUBLIC, anon, authenticated', '{schema}', each.relname);
        IF each.relkind = 'r' THEN
            EXECUTE format('ALTER TABLE %I.%I ENABLE ROW LEVEL SECURITY', '{schema}', each.relname);
        END IF;
    END LOOP;
    -- Should somebody grant these tables to users after all, they still see their own tenant only.
    FOR each IN SELECT unnest(ARRAY['{table}', '{table}__history', '{table}__controls']) AS relname LOOP
        EXECUTE format('DROP POLICY IF EXISTS lamina_tenant ON %I.%I', '{schema}', each.relname);
        EXECUTE format(
            'CREATE POLICY lamina_tenant ON %1$I.%2$I TO authenticated USING (tenant_key = sha256(convert_to('
            'coalesce(%3$s ->> ''tenant'', %3$s -> ''app_metadata'' ->> ''tenant''), ''UTF8'')))',
            '{schema}', each.relname, '(nullif(current_setting(''request.jwt.claims'', true), '''')::jsonb)');
    END LOOP;
    FOR each IN SELECT p.oid::regprocedure::text AS signature, p.proname FROM pg_proc AS p
        WHERE p.pronamespace = '"{schema}"'::regnamespace AND starts_with(p.proname::text, '{table}__')
    LOOP
        EXECUTE format(
            'REVOKE ALL ON FUNCTION %s FROM PUBLIC, anon, authenticated, service_role', each.signature);
        IF each.proname NOT IN (
            '{table}__admit', '{table}__where', '{table}__condition', '{table}__set_controls', '{table}__index') THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO authenticated, service_role', each.signature);
        END IF;
    END LOOP;
    EXECUTE 'GRANT EXECUTE ON FUNCTION "{schema}"."{table}__index"(integer) TO service_role';
END $walls$;

INSERT INTO "{schema}"."{table}__state" (version) VALUES ({version})
ON CONFLICT (only_row) DO UPDATE SET version = excluded.version;

NOTIFY pgrst, 'reload schema';

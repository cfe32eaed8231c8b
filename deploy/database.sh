#!/bin/sh
# Run once by the image of PostgreSQL, as its superuser, when its volume is empty: a database that belongs to a role
# without other rights. Row-level security holds for that role; it would not hold for a superuser.
set -eu
: "${LAMINA_DB_PASSWORD:?is not set}"
export LAMINA_DB_PASSWORD
psql --no-psqlrc --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres <<'SQL'
\getenv password LAMINA_DB_PASSWORD
CREATE ROLE lamina LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE PASSWORD :'password';
CREATE DATABASE lamina OWNER lamina ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE lamina FROM PUBLIC;
\connect lamina
CREATE EXTENSION IF NOT EXISTS vector;
SQL

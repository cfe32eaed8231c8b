"""The tables and functions in the project's database: their SQL, and the ways to get it there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from lamina.adapters.supabase.failures import Refused
from lamina.adapters.supabase.options import check_name
from lamina.adapters.supabase.rest import Rest
from lamina.errors import ConfigError, InvalidType
from lamina.ports.memory_adapter import HISTORY_KEPT

__all__ = ["MANAGEMENT_URL", "VERSION", "checked_database", "over_connection", "over_management_api", "setup_sql"]

VERSION: Final = 2
"""Of the tables and functions. It grows with every change of them."""

MANAGEMENT_URL: Final = "https://api.supabase.com"


def setup_sql(table: str, schema: str) -> str:
    """The SQL that makes a collection or brings it up to date, in one transaction.

    Raises:
        ConfigError: a name is none that it can be made under.
    """
    check_name("table", table)
    check_name("schema", schema)
    # Put in with replace: the text is full of braces, and only these two names and three constants go in.
    path = "pg_catalog, " + ", ".join(dict.fromkeys((f'"{schema}"', "extensions", '"public"'))) + ", pg_temp"
    values = {"table": table, "schema": schema, "search_path": path, "version": VERSION, "kept": HISTORY_KEPT}
    text = _template()
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


@lru_cache(maxsize=1)
def _template() -> str:
    return (files("lamina.adapters.supabase") / "setup.sql").read_text(encoding="utf-8")


def checked_database(url: str) -> Mapping[str, Any]:
    """What a connection to the database is made with.

    Raises:
        MissingExtra: psycopg is not installed.
        ConfigError: it is no URL of PostgreSQL.
    """
    from lamina.databases.postgres.address import parse_url

    try:
        return parse_url(url).parameters
    except (ConfigError, InvalidType) as error:
        raise ConfigError("database_url", error.problem, error.remedy) from None


def over_connection(parameters: Mapping[str, Any], sql: str, *, timeout: float) -> None:
    """Run it on a connection to the database itself.

    Raises:
        Refused: the database did not take it.
    """
    import psycopg

    try:
        with psycopg.connect(**{**parameters, "connect_timeout": max(2, int(timeout))}) as connection:
            connection.execute(sql.encode())
    except psycopg.Error as error:
        # The text of an error of connecting may repeat parts of the URL: only its code is kept.
        raise Refused(0, error.sqlstate or "08001", error.diag.message_primary or "") from None


def over_management_api(
    project: str, token: str, sql: str, *, url: str, timeout: float, sleep: Callable[[float], None]
) -> None:
    """Run it through the API that manages projects, with the personal access token of one who may.

    Raises:
        Refused: it was not taken.
        httpx2.TransportError: there was no answer.
    """
    headers = {"Authorization": f"Bearer {token}"}
    rest = Rest(url, lambda: headers, timeout=timeout, retries=2, connections=1, sleep=sleep)
    try:
        rest.post(f"v1/projects/{project}/database/query", {"query": sql})
    finally:
        rest.close()

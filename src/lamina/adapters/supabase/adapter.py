"""Memories in the PostgreSQL of a Supabase project, through functions that its HTTP API offers."""

from __future__ import annotations

import builtins
import time
import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, ClassVar, Final

from lamina.adapters._shared.directions import rank_by_closeness
from lamina.adapters._shared.layout_version import made_by_newer
from lamina.adapters._shared.options import DEFAULT_TABLE, check_count, check_seconds
from lamina.adapters._shared.patience import attempts
from lamina.adapters._shared.record_adapter import DIMENSIONS, RecordAdapter
from lamina.adapters._shared.records import Commit, Control, Stale, Stored
from lamina.adapters._shared.threads import not_open
from lamina.adapters.supabase.failures import BACKEND, MISSING, Refused, damaged, translated
from lamina.adapters.supabase.options import (
    Token,
    check_name,
    checked_keys,
    checked_place,
)
from lamina.adapters.supabase.rest import Rest
from lamina.adapters.supabase.setup import (
    MANAGEMENT_URL,
    VERSION,
    checked_database,
    over_connection,
    over_management_api,
    setup_sql,
)
from lamina.adapters.supabase.wire import (
    controls_of,
    controls_row,
    direction_text,
    entry_of,
    keyword,
    query,
    row_of,
    stored_of,
    version_of,
)
from lamina.domain.filters import MemoryFilter
from lamina.domain.memory import Layer, MemoryEntry, Vector
from lamina.domain.scope import Scope
from lamina.domain.text import is_clean
from lamina.errors import ConfigError
from lamina.ports.memory_adapter import Capability, ListOptions, Order, SearchHit, SearchOptions

__all__ = ["SupabaseAdapter"]

_NOTICED_AFTER: Final = 30.0
"""Seconds until the API must have noticed new functions."""


class SupabaseAdapter(RecordAdapter):
    """Memories in a Supabase project, over `POST /rest/v1/rpc/...`: no driver, no vendor's library.

    A collection is a table of this name and functions that begin with it. The HTTP API cannot make them: give
    `database_url` or `access_token`, or run what `setup_sql` returns in the project's SQL editor once.

    Args:
        url: The project's, such as `https://abcdefgh.supabase.co`.
        anon_key: The publishable key, which alone reaches nothing; goes with `user_token`. `api_key` is the same.
        service_key: The secret key, which reaches all tenants; for servers.
        user_token: The JWT of a signed-in user, or what gives a valid one. It reaches the tenant that it names
            as `tenant`, at the top or under `app_metadata`.
        database_url: Of the database itself, to make tables and functions with; needs the extra `postgres`.
        access_token: A personal access token, to make them through the management API.
        project_ref: The project's reference, for `access_token` where the URL does not tell it.
        schema: One that the API exposes.
        table: The collection's name, of at most 40 characters.
        timeout: Seconds for one attempt of a call.
        retries: Attempts after the first one, where another may help. None writes twice.
        threads: How many calls may be under way at the same time, each on a connection of its own.
    """

    name: ClassVar[str] = BACKEND
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability) - {Capability.EXPIRY}

    def __init__(
        self,
        url: str,
        *,
        anon_key: str | None = None,
        api_key: str | None = None,
        service_key: str | None = None,
        user_token: Token | None = None,
        database_url: str | None = None,
        access_token: str | None = None,
        project_ref: str | None = None,
        management_url: str = MANAGEMENT_URL,
        schema: str = "public",
        table: str = DEFAULT_TABLE,
        timeout: float = 60.0,
        retries: int = 3,
        threads: int = 8,
    ) -> None:
        super().__init__(threads=threads)
        check_seconds(timeout=timeout)
        check_count("retries", retries, 20, least=0)
        self._place = checked_place(url)
        self._keys = checked_keys(anon_key=anon_key, api_key=api_key, service_key=service_key, user_token=user_token)
        self._table = check_name("table", table)
        self._schema = check_name("schema", schema)
        self._database = None if database_url is None else checked_database(database_url)
        self._access_token = access_token
        self._project = project_ref or self._place.project
        if access_token is not None and self._project is None:
            raise ConfigError("project_ref", "is needed: url does not tell it", "Give it, as the dashboard shows it.")
        self._management_url = checked_place(management_url).url
        self._timeout, self._retries = timeout, retries
        self._rest: Rest | None = None
        self._indexed: set[int] = set()

    def __repr__(self) -> str:
        return f"SupabaseAdapter({self._place.host!r}, table={self._table!r})"

    @staticmethod
    def setup_sql(*, table: str = DEFAULT_TABLE, schema: str = "public") -> str:
        """What the project's SQL editor is to run once, to make a collection or bring it up to date."""
        return setup_sql(table, schema)

    # Opening ------------------------------------------------------------------------------

    def _open(self) -> None:
        profile = {"Content-Profile": self._schema}
        self._rest = Rest(
            f"{self._place.url}/rest/v1/rpc",
            lambda: {**self._keys.headers(), **profile},
            timeout=self._timeout,
            retries=self._retries,
            connections=self._size,
        )
        version = self._version()
        if version < VERSION and self._set_up():
            for _ in attempts(_NOTICED_AFTER, first=0.04, longest=2.0):
                version = self._version()
                if version >= VERSION:
                    break
        if version > VERSION:
            raise made_by_newer(self.name, f"{self._table} in {self._place.host}", version, VERSION)
        if version < VERSION:
            raise Refused(404, "PGRST202")

    def _version(self) -> int:
        """Which version is there; 0 if none."""
        try:
            version = self._call("version")
        except Refused as refusal:
            if refusal.code in MISSING:
                return 0
            raise
        return _number(version)

    def _set_up(self) -> bool:
        """Make the collection, or bring it up to date; False if there is no way to."""
        sql = setup_sql(self._table, self._schema)
        if self._database is not None:
            over_connection(self._database, sql, timeout=self._timeout)
        elif self._access_token is not None and self._project is not None:
            over_management_api(
                self._project,
                self._access_token,
                sql,
                url=self._management_url,
                timeout=self._timeout,
                sleep=time.sleep,
            )
        else:
            return False
        return True

    def _shut(self) -> None:
        if self._rest is not None:
            self._rest.close()
        self._rest = None
        self._indexed.clear()

    def _translated(self) -> AbstractContextManager[None]:
        call = f"SupabaseAdapter.setup_sql(table={self._table!r}, schema={self._schema!r})"
        setup = f"Run what {call} returns in the project's SQL editor, or give database_url or access_token."
        return translated(self._place.host, setup)

    def _call(self, function: str, **arguments: Any) -> Any:
        if self._rest is None:
            raise not_open(self.name)
        named = {f"p_{name}": value for name, value in arguments.items()}
        return self._rest.post(f"{self._table}__{function}", named)

    def _entries(self, rows: Any, tenant: str) -> builtins.list[MemoryEntry]:
        return [entry_of(row, tenant) for row in _rows(rows)]

    # Reading ------------------------------------------------------------------------------

    def _load(self, tenant: str, ids: Sequence[str]) -> builtins.list[Stored]:
        rows = self._call("load", tenant=tenant, ids=list(ids))
        return [stored_of(row, tenant) for row in _rows(rows)]

    def _load_controls(self, tenant: str, keys: Sequence[str]) -> dict[str, Control]:
        return controls_of(_rows(self._call("load_controls", tenant=tenant, names=list(keys))))

    def _alike(self, scope: Scope, layer: Layer, digests: Sequence[str]) -> builtins.list[Stored]:
        asked = query(scope, layers=[layer], digests=list(digests))
        rows = self._call("select", query=asked, limit=10**9, offset=0, by_relevance=False, embeddings=True)
        return [stored_of(row, scope.tenant) for row in _rows(rows)]

    def _select(self, options: ListOptions) -> builtins.list[MemoryEntry]:
        rows = self._call(
            "select",
            query=query(options.scope, options.filter, after=options.after),
            limit=options.limit,
            offset=options.offset,
            by_relevance=options.order is Order.RELEVANCE,
            embeddings=options.include_embeddings,
        )
        return self._entries(rows, options.scope.tenant)

    def _count(self, scope: Scope, filter: MemoryFilter) -> int:
        return _number(self._call("count", query=query(scope, filter)))

    def _nearest(self, embedding: Vector, options: SearchOptions) -> builtins.list[SearchHit]:
        """The database's ranking rounds, so some more than asked for are ranked here, exactly."""
        rows = self._call(
            "nearest",
            query=query(options.scope, options.filter),
            direction=direction_text(embedding),
            dimensions=len(embedding),
            limit=options.limit + max(16, options.limit // 4),
        )
        pool = self._entries(rows, options.scope.tenant)
        return rank_by_closeness(embedding, pool, options.limit, include_embeddings=options.include_embeddings)

    def _holding(self, words: Sequence[str], options: SearchOptions) -> builtins.list[MemoryEntry]:
        rows = self._call(
            "holding",
            query=query(options.scope, options.filter),
            words=[keyword(word) for word in words],
            limit=2 * options.limit + 100,
            embeddings=options.include_embeddings,
        )
        return self._entries(rows, options.scope.tenant)

    def _frequencies(self, scope: Scope, words: Sequence[str], now: datetime) -> dict[str, int]:
        possible = [word for word in words if is_clean(word)]
        numbers = dict.fromkeys(words, 0)
        if possible:
            asked = query(scope, MemoryFilter(now=now))
            answer = self._call("frequencies", query=asked, words=[keyword(word) for word in possible])
            numbers |= zip(possible, map(_number, _rows(answer)), strict=True)
        return numbers

    def _history(self, tenant: str, id: str) -> builtins.list[MemoryEntry]:
        return version_of(_rows(self._call("past", tenant=tenant, id=id)), tenant)

    # Writing ------------------------------------------------------------------------------

    def _reserve(self, number: int) -> int:
        return _number(self._call("reserve", number=number))

    def _commit(self, commit: Commit) -> None:
        changes = [row_of(each) for each in commit.changes]
        for control in commit.controls:
            if control.key == DIMENSIONS and control.value is not None:
                self._index(int(control.value))
        token = str(uuid.uuid4())  # by which the database knows the same commit again
        controls = controls_row(commit)
        try:
            self._call("commit", tenant=commit.tenant, token=token, changes=changes, controls=controls)
        except Refused as refusal:
            if refusal.is_stale:
                raise Stale from None
            raise

    def _index(self, dimensions: int) -> None:
        """Before the first vector of this length, since an index of many takes longer than a call may."""
        if self._keys.is_service and dimensions not in self._indexed:
            self._call("index", dimensions=dimensions)
            self._indexed.add(dimensions)


def _rows(answer: Any) -> builtins.list[Any]:
    if not isinstance(answer, list):
        raise damaged("an answer is no list")
    return answer


def _number(answer: Any) -> int:
    if isinstance(answer, bool) or not isinstance(answer, int):
        raise damaged("an answer is no number")
    return answer

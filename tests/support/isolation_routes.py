"""Every route of the server, how it is asked, and of what kinds the things are that its answer tells of."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import quote

__all__ = ["CLAIMS", "READS", "UNASKED", "WRITES", "Row"]

ALL_LAYERS = ["working", "session", "longterm", "organizational", "global"]
SECRET = {"query": "the secret"}
MANY = {"limit": 100}
LINES = {"Accept": "application/json, text/event-stream"}


@dataclass(frozen=True)
class Row:
    """One question to a route. `{thread}` in it is the name of somebody's thing of the kind `thread`.

    With `my_` before its kind it is the asker's own, whosever the others are. The answer tells of `own` things of the
    owner, and of those of the kinds `shared` that all owners share. `unnamed` says whose things a token without an
    owner sees that names none: `all` in the tenant, those of the owner `default`, or the `shared` ones alone.
    """

    route: str
    own: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    at: dict[str, str] = field(default_factory=dict)
    query: dict[str, object] = field(default_factory=dict)
    body: dict[str, object] | None = None
    named_in: str = ""
    unnamed: str = "all"
    page: int = 0
    says: Callable[[object, str], object] | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def names_in(self):
        """Where the owner is named: in the query or in the body, or `nowhere`."""
        return self.named_in or ("query" if self.body is None else "body")

    @property
    def has_names(self):
        """Whether it names a thing that may be another's."""
        return bool(re.search(r"\{(?!my_)[a-z_]+\}", json.dumps([self.at, self.query, self.body])))

    def asked(self, names, my_names, owner=None, **query):
        """The method, the path and the options of the request, with these names in it, and the owner if it is given."""
        names = {**names, **{f"my_{kind}": name for kind, name in my_names.items()}}
        method, _, path = self.route.partition(" ")
        for parameter, value in self.at.items():
            path = path.replace("{" + parameter + "}", quote(_filled(value, names), safe=""))
        named = {} if owner is None else {"owner": owner}
        options = {"headers": self.headers, "params": {**_filled(self.query, names), **query}}
        if self.body is not None:
            options["json"] = _filled(self.body, names)
        if self.names_in != "nowhere":
            options["params" if self.names_in == "query" else "json"].update(named)
        return method, path, options


def _filled(value, names):
    match value:
        case str():
            for kind, name in names.items():
                value = value.replace("{" + kind + "}", name)
            return value
        case dict():
            return {key: _filled(each, names) for key, each in value.items()}
        case list():
            return [_filled(each, names) for each in value]
    return value


def _mcp(method, own=(), shared=(), **params):
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return Row("POST /mcp", own, shared, body=body, named_in="nowhere", unnamed="default", headers=LINES)


def _tool(name, own=(), shared=(), **arguments):
    return _mcp("tools/call", own, shared, name=name, arguments=arguments)


_MEMORIES = ("memory", "working", "preference")
_GLOBAL = ("memory",)
_FILES = ("document", "source")
_PACKS = ("pack", "pack_id")
_FACTS = ("fact", "label", "pack_id")
_PACKED = ("pack", "fact", "label")
_SAID_TO_MODELS = ("source", "pack", "label")
_CONTEXT = (*_MEMORIES, *_FILES, *_PACKED)
_SHARED_CONTEXT = (*_GLOBAL, *_FILES, *_PACKED)
_MEMORY = {"id": "{memory}"}
_THREAD = {"id": "{thread}"}
_SESSION = {"session": "{session}"}
_EVENT = {"session": "{session}", "event": "{event}"}
_DOCUMENT = {"id": "{document}"}
_PACK = {"pack_name": "{pack}"}
_FACT = {"id": "{fact}"}
_MARKED = {"where": {"note": "{memory}"}}


def _counts_its_own(told, owner):
    return told["count"] == len(_MEMORIES) + (owner == "default")  # who made the shared one, without a name


_RECALL = "POST /v1/memories/recall"
_FORGET = "POST /v1/memories/forget"
_RETRIEVE = "POST /v1/documents/retrieve"
_FACTS_OF = "GET /utils/context-packs/{pack_name}/memories"
_SEARCH = "POST /utils/search/retrieve"

READS = (
    Row("GET /healthz", named_in="nowhere"),
    Row("GET /readyz", named_in="nowhere"),
    Row("GET /metrics", named_in="nowhere"),
    Row("GET /openapi.json", named_in="nowhere"),
    Row("GET /v1/memories", _MEMORIES, _GLOBAL, query=MANY, page=1),
    Row("GET /v1/memories", ("memory",), query={"tag": "{memory}"}),
    Row("GET /v1/memories", ("memory",), query={"namespace": "{memory}"}),
    Row(_RECALL, _MEMORIES, _GLOBAL, body={**SECRET, **MANY, "explain": True}),
    *(Row(_RECALL, _MEMORIES, _GLOBAL, body={**SECRET, **MANY, "mode": mode}) for mode in ("text", "vector", "hybrid")),
    Row(_RECALL, ("memory",), body={**SECRET, **_MARKED}),
    Row(_RECALL, ("memory",), body={**SECRET, "namespace": "{memory}"}),
    Row(_RECALL, ("memory",), body={**SECRET, "tags": ["{memory}"]}),
    Row("GET /v1/memories/quarantine", says=lambda told, _: told["data"] == []),
    Row(_FORGET, body={"layers": ALL_LAYERS, "dry_run": True}, says=_counts_its_own),
    Row(_FORGET, body={**_MARKED, "dry_run": True}, says=lambda told, _: told["count"] == 1),
    Row("GET /v1/memories/{id}", ("memory",), at=_MEMORY),
    Row("GET /v1/memories/{id}/history", ("memory", "earlier"), at=_MEMORY),
    Row(
        "POST /v1/context",
        (*_CONTEXT, "thread", "message"),
        _SHARED_CONTEXT,
        body={"goal": "the secret", "thread_id": "{thread}", "render": ["prompt", "openai", "anthropic"]},
        unnamed="default",
    ),
    Row(
        "POST /v1/context",
        ("memory", *_FILES, *_PACKED),
        (*_FILES, *_PACKED),
        body={"goal": "the secret", "namespace": "{memory}"},
        unnamed="default",
    ),
    *(
        Row(
            f"POST /v1/intents{path}",
            _CONTEXT,
            _SHARED_CONTEXT,
            body={"goal": "the secret", "context": True},
            unnamed="default",
        )
        for path in ("", "/stream")
    ),
    Row("GET /v1/threads", ("thread",), query={**MANY, "status": "all"}, page=1),
    Row("GET /v1/threads/{id}", ("thread", "message"), at=_THREAD),
    Row("GET /v1/threads/{id}/messages", ("thread", "message"), at=_THREAD, page=5),
    Row("GET /v1/threads/{id}/messages/{message}", ("message",), at={**_THREAD, "message": "{message}"}),
    Row("GET /v1/threads/{id}/context", ("thread", "message"), at=_THREAD),
    Row("GET /v1/sessions", ("session",), query=MANY, page=1),
    Row("GET /v1/sessions/{session}", ("session",), at=_SESSION),
    Row("GET /v1/sessions/{session}/events", ("thread", "event"), at=_SESSION),
    Row("GET /v1/sessions/{session}/events/{event}", ("event",), at=_EVENT),
    Row(
        "GET /v1/sessions/{session}/events/{event}",
        ("event",),
        at={**_SESSION, "event": "1"},
        query={"by_index": "true"},
    ),
    Row("GET /v1/sessions/{session}/archive", ("thread", "event"), at=_SESSION, query=MANY),
    Row("GET /v1/sessions/{session}/summaries", ("event", "thread"), at=_SESSION),
    Row("GET /v1/sessions/{session}/context", ("thread", "event"), at=_SESSION),
    Row("POST /v1/sessions/{session}/search", ("thread",), at=_SESSION, body={"text": "secret"}, named_in="query"),
    Row("GET /v1/documents", _FILES, _FILES, query=MANY, page=1),
    Row("GET /v1/documents/stats", says=lambda told, _: told == {"documents": 2, "chunks": 2}),
    *(Row(_RETRIEVE, _FILES, _FILES, body={**SECRET, "top_k": 100, "mode": mode}) for mode in ("text", "vector")),
    Row(_RETRIEVE, _FILES, _FILES, body={**SECRET, "top_k": 100, "render": True, "neighbors": 2}),
    Row(_RETRIEVE, _FILES, body={**SECRET, "where": {"note": "{source}"}}),
    Row("GET /v1/documents/{id}", _FILES, at=_DOCUMENT),
    Row("GET /v1/documents/{id}/chunks", _FILES, at=_DOCUMENT, page=1),
    Row("GET /utils/context-packs", _PACKS, _PACKS, query=MANY, unnamed="shared"),
    Row("GET /utils/context-packs", _PACKS, query={"tag": "{pack}"}, unnamed="shared"),
    Row("POST /utils/context-packs/discover", _PACKS, _PACKS, body={**SECRET, **MANY}, unnamed="shared"),
    Row("GET /utils/context-packs/{pack_name}", (*_PACKS, "fact"), at=_PACK),
    Row("GET /utils/context-packs/{pack_name}/fading", _FACTS, at=_PACK),
    Row(_FACTS_OF, _FACTS, at=_PACK),
    Row(_FACTS_OF, _FACTS, at=_PACK, query=SECRET),
    Row(_FACTS_OF, _FACTS, at={"pack_name": "{my_pack}"}, query={"tag": "{label}"}),
    Row(_FACTS_OF, _FACTS, at={"pack_name": "{my_pack}"}, query={"name": "{label}"}),
    Row(_SEARCH, _FACTS, body={**SECRET, "pack_ids": ["{pack_id}"]}),
    Row(_SEARCH, _FACTS, body={"pack_ids": ["{my_pack_id}", "{pack_id}"]}),
    Row("GET /utils/memories/{id}", _FACTS, at=_FACT, query={"include": "embedding"}),
    Row("GET /v1/export", _MEMORIES, _GLOBAL),
    _mcp("tools/list"),
    _mcp("prompts/list"),
    _mcp("resources/list"),
    _mcp("resources/templates/list"),
    _mcp("resources/read", ("memory",), uri="memory://{memory}"),
    _mcp("prompts/get", _MEMORIES, _GLOBAL, name="recall", arguments={"topic": "the secret"}),
    _tool("search_memories", _MEMORIES, _GLOBAL, query="the secret", top_k=50, explain=True),
    _tool("search_memories", ("memory",), query="the secret", filters=_MARKED),
    _tool("list_memories", _MEMORIES, _GLOBAL),
    _tool("get_memory", ("memory",), memory_id="{memory}"),
    _tool("build_context", (*_MEMORIES, *_SAID_TO_MODELS), ("memory", *_SAID_TO_MODELS), task="the secret"),
)
"""What is asked and only read, and the two of an intent, which writes nothing where it names no thread."""

_EDIT = {"content": "mine"}
_ANY = {"If-Match": "*"}
_SAID = {"role": "user", "content": "mine"}
_RELATED = {"content": "mine", "relationships": [{"type": "related_to", "target_id": "{fact}"}]}

WRITES = (
    Row("PATCH /v1/memories/{id}", at=_MEMORY, body=_EDIT, named_in="query", headers=_ANY),
    Row("DELETE /v1/memories/{id}", at=_MEMORY),
    Row("POST /v1/memories/{id}/supersede", at=_MEMORY, body={"by": "{my_memory}"}, named_in="query"),
    Row("POST /v1/memories/{id}/supersede", at={"id": "{my_memory}"}, body={"by": "{memory}"}, named_in="query"),
    Row("POST /v1/memories/release", body={"id": "{memory}"}),
    Row("POST /v1/memories", body={"content": "mine", "supersedes": ["{memory}"]}),
    Row("PATCH /v1/threads/{id}", at=_THREAD, body={"status": "archived"}, named_in="query", headers=_ANY),
    Row("DELETE /v1/threads/{id}", at=_THREAD),
    Row("POST /v1/threads/{id}/compact", at=_THREAD, body={"force": True}, named_in="query"),
    Row("POST /v1/threads/{id}/extract", at=_THREAD),
    Row("DELETE /v1/sessions/{session}", at=_SESSION),
    Row("PATCH /v1/sessions/{session}/events/{event}", at=_EVENT, body=_EDIT, named_in="query"),
    Row("DELETE /v1/sessions/{session}/events/{event}", at=_EVENT),
    Row("POST /v1/sessions/{session}/events/{event}/restore", at=_EVENT),
    Row("POST /v1/sessions/{session}/compact", at=_SESSION),
    Row("DELETE /v1/documents/{id}", at=_DOCUMENT),
    Row("PATCH /utils/context-packs/{pack_name}", at=_PACK, body={"description": "mine"}, named_in="query"),
    Row("DELETE /utils/context-packs/{pack_name}", at=_PACK),
    Row("POST /utils/context-packs/{pack_name}/permanent-delete", at=_PACK),
    Row("POST /utils/context-packs/{pack_name}/memories/batch", at=_PACK, body={"memories": [_EDIT]}, named_in="query"),
    Row("POST /utils/context-packs/{pack_name}/memories", at=_PACK, body=_EDIT, named_in="query"),
    Row(
        "POST /utils/context-packs/{pack_name}/memories", at={"pack_name": "{my_pack}"}, body=_RELATED, named_in="query"
    ),
    Row("PATCH /utils/memories/{id}", at=_FACT, body=_EDIT, named_in="query"),
    Row("DELETE /utils/memories/{id}", at=_FACT),
    *(
        Row(f"POST /utils/memories/{{id}}/{deed}", at=_FACT)
        for deed in ("permanent-delete", "pin", "unpin", "archive", "restore")
    ),
    Row("POST /utils/memories/{id}/supersede", at=_FACT, body={"by": "{my_fact}"}, named_in="query"),
    Row("POST /utils/memories/{id}/supersede", at={"id": "{my_fact}"}, body={"by": "{fact}"}, named_in="query"),
    _tool("update_memory", memory_id="{memory}", text="mine"),
    _tool("delete_memory", memory_id="{memory}"),
)
"""What would change another's thing, and must answer as if it were not there."""

_TALK = {"messages": [_SAID]}
_EVENTS = {"events": [{"message": _SAID}]}
_GOALS = ({"thread_id": "{thread}"}, {"metadata": {"thread_id": "{thread}"}}, {"metadata": {"threadId": "{thread}"}})
_NEW = {"id": "{memory}", "content": "mine"}

CLAIMS = (
    (409, Row("POST /v1/memories", body=_NEW)),
    (409, Row("POST /v1/memories/batch", body={"memories": [_NEW]}, named_in="nowhere")),
    (409, Row("POST /v1/threads", body={"id": "{thread}"})),
    (404, Row("POST /v1/threads/{id}/messages", at=_THREAD, body=_TALK, named_in="query")),
    (409, Row("POST /v1/sessions/{session}/events", at=_SESSION, body=_EVENTS, named_in="query")),
    *((404, Row("POST /v1/intents", body={"goal": "mine", **thread})) for thread in _GOALS),
    *((404, Row("POST /v1/intents/stream", body={"goal": "mine", **thread})) for thread in _GOALS),
)
"""What would make a thing under an id that another owner of the tenant has taken, and what that is answered with."""

UNASKED = {
    "DELETE /v1/sessions": "names none: deletes the asker's own",
    "POST /v1/documents": "makes a new one for the asker, or replaces the asker's own",
    "POST /v1/documents/files": "as the one above",
    "POST /utils/context-packs": "makes a new one for the asker",
    "POST /v1/maintenance": "of the whole tenant: refused to a token of an owner",
    "GET /v1/stats": "as the one above",
    "POST /v1/backup": "as the one above",
    "POST /v1/check": "as the one above",
    "POST /v1/erase": "as the one above",
    "POST /v1/memories/forget-source": "as the one below",
    "POST /v1/memories/quarantine": "of the asker's own, as tests/security has it",
    "POST /v1/import": "as the one above",
}
"""Routes that tell of nobody's things, each with the reason."""

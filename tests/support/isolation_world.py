"""Tenants and owners whose names careless code takes for one another, each with things of every kind in a server.

Each thing has a name that occurs nowhere else and stands in its id, its text, its tags and its metadata: wherever an
answer holds the name, it tells of the thing.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import quote

from served import OWNERS as HOSTILE
from served import client_of

from lamina.kernel import ModelRouter, TenantKernels
from lamina.server import Principal, create_app
from lamina.settings import ServerConfig
from lamina.testing import EchoModel, HashingEmbedder

TENANTS = ["a%", "a%:a"]
"""The first is a pattern of LIKE that the second matches; with the owners `a:1` and `1` they make the same key."""
OWNERS = [*HOSTILE, "1", "default"]
ALL = ""
"""In the place of an owner: things that a tenant's owners share."""

MADE_BY_CLIENTS = ("memory", "working", "preference", "earlier", "thread", "message", "session", "event", "source")
MADE_BY_CLIENTS += ("pack", "label")
_OWN = ("working", "preference")
MISSING = "there-is-none"
_NAMES = re.compile(r"zq[0-9a-f]{16}qz|doc_[0-9a-f]{32}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SETTINGS = {
    "conversation": {"context_engineering": {"pre_rot_threshold": 60, "recent_to_keep": 1, "summary_tokens": 100}},
    "context": {"use_packs": True, "pack_min_score": 0.0},
}


def name_of(*of):
    return f"zq{hashlib.sha256(json.dumps(of).encode()).hexdigest()[:16]}qz"


async def authenticate(token):
    tenant, owner = json.loads(bytes.fromhex(token))
    return Principal(tenant=tenant, owner=owner, id="one id for all")


def token_of(tenant, owner=None):
    return json.dumps([tenant, owner]).encode().hex()


@dataclass
class World:
    """The server and what is in it: for each owner of each tenant the names of its things by their kinds."""

    owners: list[str]
    app: object = None
    names: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    whose: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    askers: list[tuple[str, str]] = field(default_factory=list)
    missing: dict[tuple[object, ...], tuple[int, str]] = field(default_factory=dict)
    clients: dict[tuple[str, str | None], object] = field(default_factory=dict)

    @property
    def everybody(self):
        return [(tenant, owner) for tenant in TENANTS for owner in self.owners]

    def note(self, tenant, owner, kind, name):
        self.names.setdefault((tenant, owner), {})[kind] = name
        self.whose[name] = (tenant, owner, kind)

    def told_by(self, answer):
        """Whose things of which kind an answer tells of: in its body, its headers, or inside its cursors."""
        text = f"{answer.text}\n{answer.headers}"
        for cursor in re.findall(r'"next_?[cC]ursor\W{1,6}([A-Za-z0-9_-]{8,})', answer.text):
            text += base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("latin-1")
        return {self.whose[name] for name in _NAMES.findall(text) if name in self.whose}


@asynccontextmanager
async def world_of(owners, **where):
    """A server over new storage, filled through its own routes."""
    world = World(owners)
    async with _serving(world, ModelRouter(embed=HashingEmbedder()), **where):
        for tenant in TENANTS:
            for owner in (ALL, *owners):
                await _fill(world, tenant, owner)  # without a model summaries are made of the texts themselves
    async with _serving(world, ModelRouter(EchoModel(), embed=HashingEmbedder()), **where):
        for tenant, owner in world.everybody:
            working = {**_marked(world.names[tenant, owner]["working"]), "layer": "working"}
            await _done(_keeper(world, tenant, owner), "POST", "/v1/memories", working)
        yield world


@asynccontextmanager
async def _serving(world, router, **where):
    async with TenantKernels(model_router=router, **_SETTINGS, **where) as kernels, AsyncExitStack() as stack:
        world.app = create_app(kernels, auth=authenticate, settings=ServerConfig(rate_limited=False, mcp=True))
        await stack.enter_async_context(world.app.state.mcp.lifespan())
        for tenant, owner in [*world.everybody, *((tenant, None) for tenant in TENANTS)]:
            client = client_of(world.app, token=token_of(tenant, owner))
            world.clients[tenant, owner] = await stack.enter_async_context(client)
        yield


def _keeper(world, tenant, owner):
    """Who makes the memories: what one who names no owner remembers is the owner `default`'s, if it is not shared."""
    return world.clients[tenant, None if owner in {ALL, "default"} else owner]


async def _fill(world, tenant, owner):
    for kind in MADE_BY_CLIENTS if owner != ALL else [each for each in MADE_BY_CLIENTS if each not in _OWN]:
        world.note(tenant, owner, kind, name_of(tenant, owner, kind))
    names = world.names[tenant, owner]
    http = world.clients[tenant, owner or None]
    await _memories(_keeper(world, tenant, owner), names, is_shared=owner == ALL)
    await _conversations(http, names)
    world.note(tenant, owner, "document", await _document(http, names))
    pack, memory = await _pack(http, names)
    world.note(tenant, owner, "pack_id", pack)
    world.note(tenant, owner, "fact", memory)


async def _done(http, method, path, body, **options):
    answer = await http.request(method, path, json=body, **options)
    assert answer.is_success, (path, answer.text)
    return answer.json()


def _marked(name):
    return {"id": name, "content": f"The secret of {name}.", "tags": [name], "metadata": {"note": name}, "source": name}


async def _memories(http, names, *, is_shared):
    layer = {"layer": "global"} if is_shared else {}
    first = {**_marked(names["memory"]), **layer, "content": f"The old secret of {names['earlier']}."}
    await _done(http, "POST", "/v1/memories", {**first, "namespace": names["memory"]})
    change = {"content": f"The secret of {names['memory']}."}
    await _done(http, "PATCH", f"/v1/memories/{names['memory']}", change, headers={"If-Match": "*"})
    if not is_shared:
        preference = _marked(names["preference"])
        await _done(http, "POST", "/v1/memories", {**preference, "tags": ["preference", names["preference"]]})


async def _conversations(http, names):
    await _done(http, "POST", "/v1/threads", {"id": names["thread"], "metadata": {"note": names["thread"]}})
    said = {"role": "user", "id": names["message"], "content": f"The secret of {names['message']}."}
    said |= {"name": names["message"], "metadata": {"note": names["message"]}}
    later = {"role": "user", "content": f"The next secret of {names['thread']} is told in as many words as it takes."}
    await _done(http, "POST", f"/v1/threads/{names['thread']}/messages", {"messages": [said, *[later] * 12]})
    await _done(http, "POST", f"/v1/threads/{names['thread']}/compact", {"force": True})
    said = {"role": "user", "id": names["event"], "content": f"The secret of {names['event']}."}
    events = [{"message": said, "state": {"note": names["event"]}}, *[{"message": later}] * 12]
    await _done(http, "POST", f"/v1/sessions/{names['session']}/events", {"events": events})


async def _document(http, names):
    source = names["source"]
    body = {"content": f"The secret of {source} in a file.", "source": "notes.md", "metadata": {"note": source}}
    return (await _done(http, "POST", "/v1/documents", body))["id"]


async def _pack(http, names):
    pack, label = names["pack"], names["label"]
    body = {"name": pack, "type": "project", "description": f"The secret of {pack}.", "tags": [pack]}
    made = await _done(http, "POST", "/utils/context-packs", {**body, "metadata": {"note": pack}})
    facts = {"provenance": label, "custom": {"note": label}}
    body = {"name": label, "content": f"The secret of {label}.", "tags": [label], "metadata": facts}
    fact = await _done(http, "POST", f"/utils/context-packs/{quote(pack)}/memories", body)
    await _done(http, "GET", f"/utils/memories/{fact['data']['id']}", None)  # so that the pack tells of it as used
    return made["data"]["id"], fact["data"]["id"]

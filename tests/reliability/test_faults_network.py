"""The way to a PostgreSQL is cut at each message in turn: before it is passed on, or once it was answered.

In the second case what was asked for is done, a commit too, and who asked does not hear of it.
"""

from __future__ import annotations

import os
import secrets
from itertools import count
from typing import Final

import pytest
from faults_injected import NthCall, SteadyModel
from faults_world import DEEDS, World, after_doing, do_failing

from lamina.errors import AdapterError
from lamina.kernel import Kernel, ModelRouter
from lamina.testing import FrozenClock, HashingEmbedder

SOAK: Final = bool(os.environ.get("LAMINA_SOAK"))
"""The long form: every deed, and both cuts at each message. The short one takes some, and a cut in turn."""

BEFORE, AFTER = CUTS = ("cut before it is passed on", "cut once it is answered")
SHORT: Final = ("store", "compact", "ingest again", "submit")


@pytest.fixture
def nth():
    return NthCall()


@pytest.fixture
async def world(postgres, postgres_proxy, nth):
    name = f"cut_{secrets.token_hex(4)}"
    postgres.make_database(name)
    router = ModelRouter(complete=SteadyModel(), embed=HashingEmbedder(64))
    clock = FrozenClock()
    settings = {
        "memory": {"url": postgres_proxy.url.replace("/postgres?", f"/{name}?"), "auto_save": True},
        "conversation": {"compaction": {"threshold": 20, "keep_recent": 2}},
    }
    async with Kernel(settings, model_router=router, clock=clock) as kernel:
        yield World(kernel, clock)
    postgres.drop_database(name)


@pytest.mark.parametrize("name", DEEDS if SOAK else SHORT)
async def test_a_deed_is_done_whole_or_not_at_all_wherever_the_way_is_cut(world, postgres_proxy, nth, name):
    after = await after_doing(DEEDS[name], world)
    failed = 0
    for at in count(1) if SOAK else (1, 2, 3, 4, *range(5, 1000, 7)):
        for kind in CUTS if SOAK else [CUTS[at % 2]]:
            is_due = lambda _: nth.due() is not None  # noqa: E731 - one of the two asks, the other never does
            postgres_proxy.before = is_due if kind is BEFORE else never
            postgres_proxy.after = is_due if kind is AFTER else never
            cuts = postgres_proxy.cuts
            await do_failing(DEEDS[name], world, nth, at=at, kind=kind, after=after, errors=AdapterError)
            assert postgres_proxy.cuts - cuts == nth.fired
            failed += nth.fired
        if not nth.fired:
            break
    assert failed >= 2
    assert await world.kernel.packs.check() == []


def never(_):
    return False

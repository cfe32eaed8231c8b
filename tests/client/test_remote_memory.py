"""`RemoteMemory` is what `BaseMemory` is; how it behaves is tested beside the other kinds, in `test_short_term`."""

from __future__ import annotations

import inspect

import pytest
from running_server import TOKEN, served

from lamina.client import LaminaClient, RemoteMemory, SyncLaminaClient, SyncRemoteMemory
from lamina.client.blocking import Documents as BlockingDocuments
from lamina.client.blocking import Memories as BlockingMemories
from lamina.client.blocking import Packs as BlockingPacks
from lamina.client.blocking import Threads as BlockingThreads
from lamina.client.documents import Documents
from lamina.client.memories import Memories
from lamina.client.packs import Packs
from lamina.client.threads import Threads
from lamina.conversation.manager import ConversationManager
from lamina.conversation.short_term import BaseMemory
from lamina.domain.message import Message
from lamina.errors import Conflict, MessageNotFound, ScopeError
from lamina.kernel import Kernel, ModelRouter
from lamina.memory.engine import MemoryEngine
from lamina.rag.pipeline import RagPipeline
from lamina.testing import HashingEmbedder

ON_THE_SERVER = {"compact_event", "compact_with", "summarize", "store_summary", "clear_summarized_events"}
ON_THE_SERVER |= {"list_sessions"}
"""What a subclass overrides, and what the server pages by: its clients ask for `get_session_ids`."""
TWINS = [
    (LaminaClient, SyncLaminaClient),
    (RemoteMemory, SyncRemoteMemory),
    (Memories, BlockingMemories),
    (Threads, BlockingThreads),
    (Documents, BlockingDocuments),
    (Packs, BlockingPacks),
]
SAME_VERBS = [(Threads, ConversationManager), (Documents, RagPipeline), (Memories, MemoryEngine)]


def public(of):
    return {name for name in dir(of) if not name.startswith("_") and callable(getattr(of, name))}


def parameters(function):
    found = inspect.signature(function).parameters.values()
    return {each.name: (each.kind, each.default) for each in found if each.name not in {"self", "cls"}}


def test_it_has_every_method_of_short_term_memory_with_the_same_parameters():
    assert public(BaseMemory) - ON_THE_SERVER == public(RemoteMemory)
    for name in public(RemoteMemory):
        assert parameters(getattr(RemoteMemory, name)) == parameters(getattr(BaseMemory, name)), name


@pytest.mark.parametrize(("asynchronous", "blocking"), TWINS)
def test_a_blocking_twin_has_every_method_of_its_class(asynchronous, blocking):
    assert public(asynchronous) <= public(blocking)
    for name in public(asynchronous):
        assert parameters(getattr(blocking, name)) == parameters(getattr(asynchronous, name)), name


@pytest.mark.parametrize(("ours", "theirs"), SAME_VERBS)
def test_the_client_has_the_verbs_of_the_library_with_its_parameters(ours, theirs):
    assert public(ours) <= public(theirs)
    for name in public(ours):
        theirs_too = parameters(getattr(theirs, name))
        takes_any = any(kind is inspect.Parameter.VAR_KEYWORD for kind, _ in theirs_too.values())
        more = set(parameters(getattr(ours, name))) - set(theirs_too) - {"expected_revision", "filters"}
        assert not more or takes_any, name


async def test_the_server_summarises_and_gives_every_original_back(tmp_path):
    settings = {"context_engineering": {"pre_rot_threshold": 600, "recent_to_keep": 4}}
    kernel = Kernel(data_dir=tmp_path, model_router=ModelRouter(embed=HashingEmbedder()), conversation=settings)
    texts = [f"Turn {number}: the lamp of the harbour was seen again, and then once more." for number in range(150)]
    with served(kernel) as url:
        async with RemoteMemory(url, token=TOKEN, owner="ann", session="s") as memory:
            await memory.add_list([Message.user(text) for text in texts])
            report = await memory.manage_context()
            assert report.tokens_after <= 600
            summaries, archive = await memory.get_summaries(), await memory.archived()
            assert summaries[0].count == len(archive) > 100
            assert [each.message.text for each in await memory.archived(offset=110, limit=10)] == texts[110:120]
            live = memory.decompress_events((await memory.list())[1:])
            assert [each.message.text for each in [*archive, *live]] == texts
            assert (await memory.expand(1)).text == texts[0]
            assert (await memory.tier()).value == 1
            assert await memory.get_count() == len(live) + 1


async def test_the_session_of_another_owner_is_empty_and_cannot_be_added_to(tmp_path):
    with served(Kernel(data_dir=tmp_path)) as url:
        async with (
            RemoteMemory(url, token=TOKEN, owner="ann") as ann,
            RemoteMemory(url, token=TOKEN, owner="bob") as bob,
        ):
            await ann.add({"role": "user", "content": "secret"})
            with pytest.raises(Conflict):
                await bob.add({"role": "user", "content": "mine"})
            with pytest.raises(MessageNotFound):
                await bob.expand(1)
            assert await bob.list() == await bob.retrieve("secret") == await bob.get_session_ids() == []
            assert (await bob.has_session("default"), await bob.delete(1), await bob.clear()) == (False, 0, 0)
            assert await ann.get_count() == 1
        async with RemoteMemory(url, token="wrong") as nobody:
            with pytest.raises(ScopeError):
                await nobody.get_count()


async def test_the_session_is_the_argument_else_what_the_state_names_else_the_memorys_own(tmp_path):
    with served(Kernel(data_dir=tmp_path)) as url:
        async with RemoteMemory(url, token=TOKEN, session="own") as memory:
            hello = {"role": "user", "content": "hello"}
            await memory.add({"message": hello, "state": {"session_id": "named"}}, "argument")
            await memory.add({"message": hello, "state": {"sessionId": "named"}})
            await memory.add(hello)
            assert sorted(await memory.get_session_ids()) == ["argument", "named", "own"]

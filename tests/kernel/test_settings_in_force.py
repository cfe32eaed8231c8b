"""Every setting of a project does something in a kernel made from it."""

from __future__ import annotations

import sqlite3

import pytest

from lamina.errors import ConfigError
from lamina.kernel import Kernel, ModelRouter
from lamina.settings import LaminaConfig, define_config
from lamina.testing import EchoModel, FrozenClock, HashingEmbedder


def open_with(model=None, **settings):
    router = ModelRouter(complete=model or EchoModel(), embed=HashingEmbedder())
    return Kernel.from_config(define_config(**settings), model_router=router)


def prompt(model, call=-1):
    return "\n".join(each.content for each in model.calls[call])


async def test_auto_recall_off_leaves_memories_out():
    for switched, expected in ((True, True), (False, False)):
        model = EchoModel()
        async with open_with(model, memory={"auto_recall": switched}) as kernel:
            await kernel.memory_engine.store("The key is blue", owner="mira")
            await kernel.submit(goal="Which colour is the key?", owner="mira")
        assert ("The key is blue" in prompt(model)) is expected


async def test_context_messages_says_how_many_are_shown_and_the_rest_is_covered():
    model = EchoModel()
    async with open_with(model, memory={"contextMessages": 4}) as kernel:
        for number in range(10):
            await kernel.submit(goal=f"Saying number{number}", owner="mira", thread_id="t")
        result = await kernel.submit(goal="What was said?", owner="mira", thread_id="t")
    assert len([each for each in result.context.conversation.messages if each.role.value != "system"]) <= 4
    answered = next(call for call in range(len(model.calls)) if prompt(model, call).endswith("What was said?"))
    for number in range(10):
        assert f"number{number}" in prompt(model, answered)


async def test_without_context_messages_the_window_is_shown():
    async with open_with() as kernel:
        for number in range(15):
            await kernel.submit(goal=f"Saying {number}", owner="mira", thread_id="t")
        result = await kernel.submit(goal="What was said?", owner="mira", thread_id="t")
    assert len(result.context.conversation.messages) == 30


async def test_compaction_folds_a_thread_at_sixty_messages_and_keeps_ten():
    folded = []
    async with open_with(memory={"compaction": {"enabled": True, "threshold": 50, "keepRecent": 10}}) as kernel:
        kernel.on("thread.summarized", folded.append)
        for number in range(30):
            assert folded == []
            await kernel.submit(goal=f"Saying {number}", owner="mira", thread_id="t")
        thread = await kernel.conversation.retrieve("t")
    assert len(folded) == 1
    assert len(thread.messages) == 10
    assert (thread.summaries[0].from_index, thread.summaries[0].to_index) == (1, 50)


async def test_the_helper_model_of_the_memory_block_summarises():
    helper = EchoModel([{"summary": "They said many things.", "topics": [], "facts": []}] * 50)
    async with open_with(memory={"llm": helper}, conversation={"window": 4}) as kernel:
        for number in range(4):
            await kernel.submit(goal=f"Saying {number}", owner="mira", thread_id="t")
        thread = await kernel.conversation.retrieve("t")
    assert thread.summaries[0].text == "They said many things."
    assert len(helper.calls) >= 1


async def test_the_clock_owner_and_namespace_of_the_memory_block_hold():
    clock = FrozenClock()
    memory = {"clock": clock, "default_owner": "house", "default_namespace": "home", "tenant": "acme"}
    async with open_with(memory=memory) as kernel:
        id = await kernel.memory_engine.store("The key is blue")
        entry = await kernel.memory_engine.get(id)
        result = await kernel.submit(goal="Which key?", thread_id="t")
        thread = await kernel.conversation.retrieve("t")
    assert (entry.owner, entry.namespace, entry.tenant, entry.created_at) == ("house", "home", "acme", clock())
    assert result.context.user.user_id == "house"
    assert (thread.owner, thread.tenant, thread.created_at) == ("house", "acme", clock())


async def test_the_limits_of_documents_are_those_of_the_rag_block():
    async with open_with(rag={"top_k": 2, "min_score": 0.0, "chunk_size": 20, "chunk_overlap": 0}) as kernel:
        text = "\n\n".join(f"# Key {number}\n\nThe key number {number} hangs on hook {number}." for number in range(9))
        await kernel.rag.ingest(text, "keys.md")
        result = await kernel.submit(goal="Where does the key hang?")
        assert (await kernel.rag.stats()).chunks > 4
    assert len(result.context.documents) == 2


async def test_memories_chunks_threads_and_documents_share_one_file(tmp_path):
    async with open_with(memory={"path": tmp_path / "notes.db"}) as kernel:
        await kernel.memory_engine.store("The key is blue", owner="mira")
        await kernel.rag.ingest("# Key\n\nIt hangs by the door.", "keys.md")
        await kernel.submit(goal="Which key?", owner="mira", thread_id="t")
    assert {each.suffix for each in tmp_path.iterdir()} == {".db"}
    with sqlite3.connect(tmp_path / "notes.db") as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.close()
    assert {"lamina_memories", "lamina_chunks", "lamina_pack_memories"} <= tables


async def test_a_table_of_ones_own_has_chunks_of_its_own(tmp_path):
    for table in ("first", "second"):
        async with open_with(
            memory={"path": tmp_path / "notes.db", "table": table}, state_url=f"sqlite:///{tmp_path / table}.db"
        ) as kernel:
            assert (await kernel.rag.stats()).documents == 0
            await kernel.rag.ingest("# Key\n\nIt hangs by the door.", f"{table}.md")
            assert [each.source for each in await kernel.rag.retrieve("Where hangs the key?")] == [f"{table}.md"]


async def test_state_may_be_kept_elsewhere(tmp_path):
    async with open_with(data_dir=tmp_path / "data", state_url=f"sqlite:///{tmp_path / 'state.db'}") as kernel:
        await kernel.submit(goal="hello", thread_id="t")
    async with open_with(data_dir=tmp_path / "other", state_url=f"sqlite:///{tmp_path / 'state.db'}") as kernel:
        assert len(await kernel.conversation.history("t")) == 2
        assert await kernel.memory_engine.count() == 0
    async with open_with(data_dir=tmp_path / "data", state_url=":memory:") as kernel:
        assert await kernel.conversation.list_threads("all") == []


async def test_threads_and_heads_of_documents_are_kept_in_postgres(postgres_database):
    for expected in (0, 1):
        async with open_with(state_url=postgres_database, memory={"provider": "memory"}) as kernel:
            assert len(await kernel.conversation.list_threads("all")) == expected
            await kernel.submit(goal="hello", owner="mira", thread_id="t")
            assert len(await kernel.conversation.history("t")) == 2 * (expected + 1)


async def test_with_a_url_of_postgres_everything_is_kept_there_over_the_same_connections(postgres, postgres_database):
    name = postgres_database.partition("?")[0].rpartition("/")[2]
    for expected in (0, 1):
        async with open_with(memory={"url": postgres_database, "table": "notes"}) as kernel:
            assert await kernel.memory_engine.count() == expected
            assert len(await kernel.conversation.list_threads("all")) == expected
            assert (await kernel.rag.stats()).documents == expected
            await kernel.memory_engine.store("The key is blue", owner="mira")
            await kernel.rag.ingest("# Key\n\nIt hangs by the door.", "keys.md")
            await kernel.submit(goal="Which key?", owner="mira", thread_id="t")
            assert kernel.memory_engine.adapter.name == "postgres"
            [(sessions,)] = postgres.run("SELECT count(*) FROM pg_stat_activity WHERE datname = %s", name)
            assert sessions <= 8
    query = "SELECT relname FROM pg_class WHERE relname IN ('notes', 'notes_chunks', 'threads') ORDER BY 1"
    assert postgres.run(query, url=postgres_database) == [("notes",), ("notes_chunks",), ("threads",)]


async def test_state_may_be_kept_in_another_place_than_memories_in_postgres(postgres, postgres_database, tmp_path):
    state = f"sqlite:///{tmp_path / 'state.db'}"
    async with open_with(memory={"url": postgres_database}, state_url=state) as kernel:
        await kernel.submit(goal="hello", thread_id="t")
    assert (tmp_path / "state.db").is_file()
    assert postgres.run("SELECT 1 FROM pg_class WHERE relname = 'threads'", url=postgres_database) == []


async def test_an_adapter_that_is_made_already_holds_the_memories(tmp_path):
    from lamina.adapters.sqlite import SqliteAdapter

    adapter = SqliteAdapter(tmp_path / "mine.db")
    async with open_with(memory={"adapter": adapter}, data_dir=tmp_path) as kernel:
        assert kernel.memory_engine.adapter is adapter
        await kernel.submit(goal="hello", thread_id="t")
    assert (tmp_path / "lamina.db").is_file()


async def test_without_an_embedder_everything_goes_by_words():
    async with Kernel(memory={"embedding": "none"}, model_router=ModelRouter(complete=EchoModel())) as kernel:
        await kernel.memory_engine.store("The key is blue", owner="mira")
        await kernel.rag.ingest("# Key\n\nThe key hangs by the door.", "keys.md")
        result = await kernel.submit(goal="Where is the key?", owner="mira")
    assert kernel.config.memory.embedding.provider == "none"
    assert len(result.context.memories) == 1
    assert len(result.context.documents) == 1


async def test_the_offline_embedder_is_the_default(tmp_path):
    async with Kernel(data_dir=tmp_path, model_router=ModelRouter(complete=EchoModel())) as kernel:
        await kernel.memory_engine.store("The spare key is under the blue pot", owner="mira")
        assert kernel.memory_engine.embedder.provider == "builtin"
        result = await kernel.submit(goal="How do I get in without my key?", owner="mira")
    assert len(result.context.memories) == 1


async def test_working_layer_and_lifetimes_reach_the_engine():
    async with open_with(memory={"layerTtls": {"longterm": 60}, "workingStorage": "adapter"}) as kernel:
        id = await kernel.memory_engine.store("short lived", layer="longterm", owner="mira")
        assert (await kernel.memory_engine.get(id)).ttl == 60.0


def test_camel_case_is_taken_at_every_depth():
    config = define_config(
        {
            "dataDir": "d",
            "stateUrl": ":memory:",
            "memory": {"autoRecall": False, "autoSave": True, "contextMessages": 10},
            "context": {"tokenBudget": 900},
            "conversation": {"summarizeBatchSize": 3, "compaction": {"keepRecent": 4}},
            "rag": {"topK": 3},
            "agents": {"maxRounds": 2},
        }
    )
    assert isinstance(config, LaminaConfig)
    assert config.context.token_budget == 900
    assert config.effective_conversation().compaction.keep_recent == 4
    assert config.effective_conversation().context_messages == 10
    assert config.effective_context().auto_recall is False
    assert config.effective_context().document_limit == 3


@pytest.mark.parametrize("block", ["context", "conversation", "rag", "agents"])
def test_unknown_keys_of_a_block_are_refused_with_their_path(block):
    with pytest.raises(ConfigError, match=rf"{block}\.nonsense"):
        define_config({block: {"nonsense": 1}})


def test_the_more_special_block_holds():
    config = define_config(
        memory={"compaction": {"threshold": 7}, "context_messages": 3},
        conversation={"compaction": {"threshold": 9}, "context_messages": 5},
    )
    assert config.effective_conversation().compaction.threshold == 9
    assert config.effective_conversation().context_messages == 5
    assert define_config(context={"auto_recall": False}).effective_context().auto_recall is False


MANUAL = """# Timetable

The ferry to the island leaves at nine in the morning and at four in the afternoon.

# Fares

A return ticket costs twelve euros; children under six travel free.
"""


@pytest.mark.parametrize(
    ("goal", "matches"),
    [("When does the ferry leave?", True), ("What does a return ticket cost?", True), ("Tell me a joke", False)],
)
async def test_documents_that_have_nothing_to_do_with_the_goal_add_nothing(goal, matches):
    async with Kernel() as kernel:
        await kernel.rag.ingest(MANUAL, "ferry.md")
        context = await kernel.context_engine.compute(intent_id="i", goal=goal, owner_id="mira")
    assert bool(context.documents) is matches


async def test_without_an_embedder_whatever_shares_a_word_matches():
    async with Kernel(memory={"embedding": "none"}) as kernel:
        await kernel.rag.ingest(MANUAL, "ferry.md")
        found, nothing = [
            await kernel.context_engine.compute(intent_id="i", goal=goal, owner_id="mira")
            for goal in ("Where is the blue ferry, and why?", "Tell me a joke")
        ]
    assert found.documents
    assert nothing.documents == []


async def test_threads_under_the_token_tiers_leave_room_in_the_context():
    async def complete(messages):
        return "Well. " * 200

    config = {"context": {"token_budget": 4000}, "conversation": {"context_engineering": {"recent_to_keep": 2}}}
    async with open_with(complete, **config) as kernel:
        await kernel.memory_engine.store("Wants short answers", owner="mira", tags=["preference"])
        for number in range(20):
            result = await kernel.submit(goal=f"Question {number}?", owner="mira", thread_id="t")
            assert not result.context.over_budget
    assert result.context.user.preferences["notes"] == ["Wants short answers"]


def test_a_size_that_is_given_to_the_tiers_stands():
    config = define_config(conversation={"context_engineering": {"pre_rot_threshold": 9000}})
    assert config.effective_conversation(token_budget=4000).context_engineering.pre_rot_threshold == 9000
    config = define_config(conversation={"context_engineering": {}})
    assert config.effective_conversation(token_budget=4000).context_engineering.pre_rot_threshold == 2000
    assert config.effective_conversation(token_budget=10**6).context_engineering.pre_rot_threshold == 150_000


async def test_another_backend_holds_memories_and_chunks_apart_and_the_kernels_file_holds_the_rest(mongodb, tmp_path):
    memory = {"url": mongodb.url, "options": {"collection": "kernel_notes", "database": "kernel"}}
    for expected in (0, 1):
        async with open_with(memory=memory, data_dir=tmp_path) as kernel:
            assert await kernel.memory_engine.count() == expected
            assert (await kernel.rag.stats()).documents == expected
            await kernel.memory_engine.store("The key is blue", owner="mira")
            await kernel.rag.ingest("# Key\n\nIt hangs by the door.", "keys.md")
            await kernel.submit(goal="hello", owner="mira", thread_id="t")
            assert len(await kernel.conversation.history("t")) == 2 * (expected + 1)
            assert len(await kernel.memory_engine.recall("key", owner="mira")) == 1


async def test_options_reach_the_file_and_the_database_and_others_are_refused(postgres_database, tmp_path):
    async with open_with(memory={"path": tmp_path / "m.db", "options": {"readers": 1}}) as kernel:
        await kernel.memory_engine.store("The key is blue", owner="mira")
    memory = {"url": postgres_database, "options": {"connections": 2, "schema": "elsewhere"}}
    async with open_with(memory=memory) as kernel:
        await kernel.memory_engine.store("The key is blue", owner="mira")
    for wrong in ({"path": tmp_path / "m.db"}, {"url": postgres_database}):
        with pytest.raises(ConfigError, match=r"memory\.options: holds what .* does not take"):
            await open_with(memory={**wrong, "options": {"speed": 9}}).start()

"""The short way in."""

from __future__ import annotations

import pytest

from lamina.errors import AskError, ConfigError, InvalidInput, InvalidType, NotStarted, ScopeError
from lamina.kernel import ModelRouter
from lamina.sdk import Lamina
from lamina.testing import EchoModel, HashingEmbedder


@pytest.fixture(autouse=True)
def _away_from_home(tmp_path, monkeypatch):
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    for name in ("LAMINA_DATA_DIR", "LAMINA_DB"):
        monkeypatch.delenv(name, raising=False)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)


def router(*replies):
    return ModelRouter(complete=EchoModel(replies), embed=HashingEmbedder())


async def test_what_was_remembered_reaches_the_answer_and_is_there_the_next_time(tmp_path):
    model = EchoModel(["Functions of ten lines."])
    async with await Lamina.create(
        tmp_path / "data", model=ModelRouter(complete=model, embed=HashingEmbedder())
    ) as app:
        id = await app.remember("Likes short functions", "longterm", tags=["style"])
        assert id.startswith("mem_")
        assert [each.entry.content for each in await app.recall("short functions")] == ["Likes short functions"]
        await app.get_kernel().rag.ingest("# Style\n\nFunctions have at most forty lines.", "style.md")
        result = await app.ask("How long should functions be?", thread_id="session-123")
    assert result.answer == "Functions of ten lines."
    told = "".join(each.content for each in model.calls[0])
    assert "Likes short functions" in told
    assert "forty lines" in told
    async with await Lamina.create(tmp_path / "data", model=router()) as app:
        assert len(await app.recall("short functions")) == 1
        context = await app.thread("session-123").get_context()
        assert [each.text for each in context.messages] == ["How long should functions be?", "Functions of ten lines."]
    assert (tmp_path / "data" / "lamina.db").is_file()


async def test_a_thread_takes_messages_and_shows_them(tmp_path):
    async with await Lamina.create(tmp_path, model=router()) as app:
        thread = app.thread("session-123")
        assert (await thread.get_context()).messages == []
        message = await thread.add_message("user", "Where do I start?")
        assert message.index == 1
        assert [each.text for each in (await thread.get_context()).messages] == ["Where do I start?"]
        assert (await thread.get_context()).summary is None


@pytest.mark.parametrize(
    ("argument", "variable", "setting", "expected"),
    [
        ("argument", "variable", "setting", "argument"),
        (None, "variable", "setting", "variable"),
        (None, None, "setting", "setting"),
        (None, None, None, "home/lamina"),
    ],
)
async def test_the_place_is_the_argument_else_the_variable_else_the_projects_else_the_users(
    tmp_path, argument, variable, setting, expected
):
    if setting:
        (tmp_path / "work" / "lamina.toml").write_text(f'data_dir = "{tmp_path / setting}"\n', "utf-8")
    environ = {} if variable is None else {"LAMINA_DATA_DIR": str(tmp_path / variable)}
    app = await Lamina.create(None if argument is None else tmp_path / argument, model=router(), environ=environ)
    await app.remember("x y z")
    await app.close()
    assert (tmp_path / expected / "lamina.db").is_file()
    assert len(list(tmp_path.rglob("lamina.db"))) == 1


async def test_an_owner_sees_what_is_theirs(tmp_path):
    async with await Lamina.create(tmp_path, owner="mira", model=router()) as app:
        await app.remember("The key is blue")
        await app.remember("The key is red", owner="tomas")
        assert [each.entry.content for each in await app.recall("key")] == ["The key is blue"]
        assert [each.entry.content for each in await app.recall("key", owner="tomas")] == ["The key is red"]
        await app.ask("hello", thread_id="diary")
        with pytest.raises(ScopeError):
            await app.ask("hello", thread_id="diary", owner="tomas")
        with pytest.raises(ScopeError):
            await app.thread("diary", owner="tomas").get_context()


async def test_a_question_that_fails_carries_its_result(tmp_path):
    async with await Lamina.create(tmp_path, model=ModelRouter(embed=HashingEmbedder())) as app:
        with pytest.raises(AskError, match="ModelRouter") as caught:
            await app.ask("Why?")
        assert caught.value.result.error.kind == "NoModelConfiguredError"
        with pytest.raises(InvalidInput):
            await app.ask(" ")


async def test_a_closed_one_says_so(tmp_path):
    app = await Lamina.create(tmp_path, model=router())
    await app.close()
    await app.close()
    with pytest.raises(NotStarted):
        await app.recall("key")


async def test_the_projects_settings_hold_and_keywords_win(tmp_path):
    (tmp_path / "work" / "lamina.toml").write_text('[memory]\ndefault_owner = "house"\n[rag]\ntop_k = 3\n', "utf-8")
    async with await Lamina.create(tmp_path, model=router(), rag={"top_k": 7}) as app:
        assert app.owner == "house"
        assert app.get_kernel().config.rag.top_k == 7
    async with await Lamina.create(model=router(), ephemeral=True) as app:
        assert app.get_kernel().ephemeral


async def test_the_model_may_be_a_callable(tmp_path):
    async def complete(messages):
        return f"{len(messages)} messages came."

    async with await Lamina.create(tmp_path, model=complete, memory={"embedding": "none"}) as app:
        assert (await app.ask("How many?")).answer.endswith("messages came.")


async def test_what_is_wrong_in_an_argument_is_said_to_come_from_the_arguments(tmp_path):
    with pytest.raises(ConfigError, match="from the arguments"):
        await Lamina.create(tmp_path, rag={"top_k": 0})


async def test_a_model_without_its_provider_is_told_how_to_be_named(tmp_path):
    with pytest.raises(ConfigError, match="such as openai:gpt-4o"):
        await Lamina.create(tmp_path, model="gpt-4o")


async def test_what_cannot_be_is_refused(tmp_path):
    with pytest.raises(ConfigError):
        await Lamina.create(5)
    with pytest.raises(ConfigError, match="nonsense"):
        await Lamina.create(tmp_path, nonsense=1)
    with pytest.raises((InvalidInput, InvalidType)):
        await Lamina.create(tmp_path, owner=" ", model=router())


@pytest.mark.parametrize(("owner", "error"), [("", InvalidInput), ("\u200b", InvalidInput), (0, InvalidType)])
async def test_an_owner_that_names_nobody_is_refused_and_never_read_as_the_default_one(tmp_path, owner, error):
    async with await Lamina.create(tmp_path, model=router(), owner="alice") as app:
        await app.remember("The code of the safe is 4711")
        for call in (app.recall, app.ask, app.remember):
            with pytest.raises(error, match="owner"):
                await call("The code of the safe", owner=owner)
        with pytest.raises(error, match="owner"):
            app.thread("t", owner=owner)
        assert len(await app.recall("The code of the safe")) == 1
    with pytest.raises(error, match="owner"):
        await Lamina.create(tmp_path / "other", model=router(), owner=owner)
    assert not (tmp_path / "other").exists()

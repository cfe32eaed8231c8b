from __future__ import annotations

import os

import pytest

from lamina.errors import ConfigError, ProviderError
from lamina.kernel import Kernel, ModelRouter
from lamina.kernel.checks import CHECKS, Status, examine
from lamina.settings import define_config
from lamina.testing import EchoModel, HashingEmbedder


def ids(findings):
    return [each.id for each in findings]


async def test_where_there_is_no_database_none_is_made_and_settings_are_looked_at(path, clock):
    findings = await examine(lambda: define_config(memory={"path": path}), clock=clock)
    assert ids(findings) == [each.id for each in CHECKS if not each.needs_stores]
    assert {each.status for each in findings} == {Status.OK}
    assert not path.exists()


async def test_the_database_of_a_data_folder_is_not_made(tmp_path, clock):
    await examine(lambda: define_config(data_dir=tmp_path / "data"), clock=clock)
    assert not (tmp_path / "data").exists()


@pytest.mark.skipif(os.name == "nt", reason="files have no such mode there")
async def test_the_mode_of_the_database_of_a_data_folder_is_looked_at(tmp_path, clock):
    folder = tmp_path / "data"
    async with Kernel(data_dir=folder, model_router=ModelRouter(embed=HashingEmbedder()), clock=clock) as kernel:
        (folder / "lamina.db").chmod(0o644)
        findings = {each.id: each for each in await kernel.diagnose()}
    assert findings["database-open-to-others"].status is Status.ERROR


async def test_settings_that_cannot_be_read_are_the_one_finding(clock):
    def read():
        raise ConfigError("memory.tennant", "is unknown", "Did you mean tenant?")

    [finding] = await examine(read, clock=clock)
    assert (finding.id, finding.status) == ("settings-invalid", Status.ERROR)
    assert "memory.tennant" in finding.found


async def test_stores_that_cannot_be_opened_are_told_and_what_is_in_them_is_not_asked_for(path, clock):
    path.write_bytes(b"no database" * 1000)
    findings = {each.id: each for each in await examine(lambda: define_config(memory={"path": path}), clock=clock)}
    assert findings["database-unusable"].status is Status.ERROR
    assert "vectors-missing" not in findings


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"state_url": "postgresql://127.0.0.1:1/nobody"}, "reached"),
        ({"memory": {"provider": "nobody"}}, "settings"),
    ],
)
async def test_the_remedy_is_for_what_is_wrong_with_the_place(path, clock, settings, remedy):
    path.touch(mode=0o600)
    config = define_config({"memory": {"path": path}, **settings})
    findings = {each.id: each for each in await examine(lambda: config, clock=clock)}
    finding = findings["database-unusable"]
    assert (finding.status, remedy in finding.remedy) == (Status.ERROR, True)


async def test_an_embedder_that_cannot_be_made_leaves_the_stores_to_be_looked_at(running, path, clock):
    async with running() as kernel:
        await kernel.memory_engine.store("a note")
    config = define_config(memory={"path": path, "embedding": "nobody:model"})
    findings = {each.id: each for each in await examine(lambda: config, clock=clock)}
    assert findings["model-unusable"].status is Status.ERROR
    assert "nobody" in findings["model-unusable"].found
    assert findings["database-unusable"].status is Status.OK
    assert findings.keys() == {each.id for each in CHECKS}


async def test_a_summarising_model_that_cannot_be_made_is_told(path, clock):
    config = define_config(memory={"path": path, "llm": "nobody:model"})
    findings = {each.id: each for each in await examine(lambda: config, clock=clock)}
    assert findings["model-unusable"].status is Status.ERROR


async def test_a_kernel_that_runs_can_be_asked_and_asks_no_model(clock):
    class Deaf(HashingEmbedder):
        async def embed_documents(self, texts):
            raise ProviderError("Deaf", "was contacted")

        embed_query = embed_documents

    model = EchoModel()
    async with Kernel(model_router=ModelRouter(complete=model, embed=Deaf()), clock=clock) as kernel:
        findings = await kernel.diagnose()
    assert ids(findings) == [each.id for each in CHECKS]
    assert {each.status for each in findings} == {Status.OK}
    assert model.calls == []

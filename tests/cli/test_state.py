from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lamina import __version__

Lamina = Callable[..., Any]


def test_stats_count(lamina: Lamina) -> None:
    lamina("remember", "one", "-l", "session")
    lamina("remember", "two")
    document = lamina("stats", "--json").document
    assert (document["memories"], document["by_layer"]["session"], document["adapter"]) == (2, 1, "sqlite")
    assert "memories" in lamina("stats").out


@pytest.mark.parametrize(
    "name", ["stats", "reembed", "doctor", "vacuum", "import", "demo", "version", "config show", "config path"]
)
@pytest.mark.parametrize("scope", ["--owner", "--namespace"])
def test_a_command_on_a_whole_tenant_refuses_a_narrower_scope(lamina: Lamina, name: str, scope: str) -> None:
    run = lamina(*name.split(), scope, "x")
    assert (run.code, "not about one owner or namespace" in run.err) == (2, True)
    assert scope not in lamina(*name.split(), "--help").out


@pytest.mark.parametrize("name", ["ingest", "docs list", "docs search x", "docs clear"])
def test_a_command_on_documents_refuses_a_namespace(lamina: Lamina, name: str) -> None:
    run = lamina(*name.split(), "--namespace", "x")
    assert (run.code, "not about one namespace" in run.err) == (2, True)
    shown = lamina(*name.split()[:2], "--help").out
    assert ("--namespace" in shown, "--owner" in shown) == (False, True)


def test_the_demo_has_no_json_form(lamina: Lamina) -> None:
    assert lamina("demo", "--json").code == 2


def test_decay_is_one_cycle(lamina: Lamina) -> None:
    lamina("remember", "fades", "--id", "f", "--relevance", "0.8")
    assert lamina("decay", "--json").document == {"scanned": 0, "decayed": 0, "floored": 0}
    report = lamina("decay", "--older-than", "0s", "--factor", "0.5", "--min-relevance", "0.3", "--json").document
    assert report == {"scanned": 1, "decayed": 1, "floored": 0}
    assert lamina("get", "f", "--json").document["relevance"] == pytest.approx(0.4)
    assert lamina("decay", "--older-than", "soon").code == 2
    assert lamina("decay", "--factor", "2").code == 2


def test_reembedding_without_an_embedder_is_refused(lamina: Lamina) -> None:
    run = lamina("reembed")
    assert (run.code, "embedding" in run.err) == (1, True)


def test_doctor_finds_a_fresh_place_well_and_makes_nothing(lamina: Lamina, tmp_path: Path) -> None:
    run = lamina("doctor")
    assert (run.code, "All is well." in run.out) == (0, True)
    assert not (tmp_path / "data").exists()


def test_doctor_tells_versions_embedder_and_place(lamina: Lamina, tmp_path: Path) -> None:
    lamina("remember", "a note")
    document = lamina("doctor", "--json").document
    assert document["lamina"] == __version__
    assert document["problems"] == []
    assert document["embedding"] == "none, as said by the environment variable LAMINA_EMBEDDER"
    assert document["database"] == str(tmp_path / "data" / "lamina.db")
    assert "builtin" in lamina("doctor", "--json", env={"LAMINA_EMBEDDER": ""}).document["embedding"]


def test_doctor_fails_on_wrong_settings(lamina: Lamina) -> None:
    run = lamina("doctor", env={"LAMINA_TENNANT": "x"})
    assert (run.code, "LAMINA_TENNANT" in run.out, "Something is wrong." in run.out) == (1, True, True)


def test_doctor_fails_on_a_damaged_database(lamina: Lamina, tmp_path: Path) -> None:
    lamina("remember", "a note")
    database = tmp_path / "data" / "lamina.db"
    for extra in database.parent.glob("lamina.db-*"):
        extra.unlink()
    database.write_bytes(b"this is no database at all" * 400)
    run = lamina("doctor")
    assert (run.code, "Problem:" in run.out) == (1, True)


def test_config_show_tells_values_and_where_they_come_from(lamina: Lamina, folder: Path) -> None:
    (folder / "lamina.toml").write_text(
        '[memory]\ndefault_namespace = "notes"\n[memory.embedding]\nprovider = "openai"\n'
        'api_key = "sk-abcdefghijklmnopqrstuvwxyz"\n',
        encoding="utf-8",
    )
    env = {"LAMINA_EMBEDDER": ""}
    shown = lamina("config", "show", "--json", "--tenant", "acme", env=env).document
    assert shown["memory.tenant"] == {"value": "acme", "origin": "the command line"}
    assert shown["memory.default_namespace"]["origin"].endswith("lamina.toml")
    assert shown["memory.embedding.api_key"]["value"] == "sk-a…wxyz"
    assert shown["memory.table"]["origin"] == "the default"
    assert "abcdefghijkl" not in lamina("config", "show", env=env).out


def test_config_path_tells_the_files(lamina: Lamina, folder: Path, tmp_path: Path) -> None:
    (folder / "lamina.toml").write_text('data_dir = "here"\n', encoding="utf-8")
    document = lamina("config", "path", "--json", env={"LAMINA_DATA_DIR": ""}).document
    assert document["project_file"] == str(folder / "lamina.toml")
    assert document["database"] == str(folder / "here" / "lamina.db")
    assert document["user_file_exists"] is False
    assert lamina("config", "path", "--data-dir", str(tmp_path / "x"), "--json").document["database"] == str(
        tmp_path / "x" / "lamina.db"
    )


def test_a_data_folder_of_the_command_line_hides_every_place_below(lamina: Lamina, folder: Path) -> None:
    (folder / "lamina.toml").write_text('[memory]\nurl = "postgres://p.example/x"\n', encoding="utf-8")
    assert lamina("remember", "here", "--data-dir", "mine").code == 0
    assert (folder / "mine" / "lamina.db").exists()


def test_a_broken_settings_file_is_told_by_name_in_one_line(lamina: Lamina, folder: Path) -> None:
    (folder / "lamina.toml").write_text("[memory\n", encoding="utf-8")
    run = lamina("list")
    assert (run.code, run.err.count("\n"), "lamina.toml" in run.err) == (1, 1, True)


def test_the_version_is_told_both_ways(lamina: Lamina) -> None:
    assert lamina("--version").out == f"{__version__}\n"
    assert lamina("version", "--json").document["lamina"] == __version__
    assert lamina("version").out.startswith(f"lamina {__version__} (Python ")


def test_config_show_tells_what_is_in_force_and_not_what_is_left_unsaid(lamina: Lamina, tmp_path: Path) -> None:
    env = {"LAMINA_EMBEDDER": "", "LAMINA_MEMORY__WORKING_MEMORY_TTL": "never"}
    shown = lamina("config", "show", "--json", env=env).document
    told = {name: each["value"] for name, each in shown.items()}
    assert told["memory.path"] == str(tmp_path / "data" / "lamina.db")
    assert shown["memory.path"]["origin"] == "the environment variable LAMINA_DATA_DIR"
    assert told["memory.embedding.provider"] == "builtin"
    assert told["memory.working_storage"] == "adapter"
    assert (told["memory.working_memory_ttl"], told["memory.layer_ttls.longterm"]) == ("never", "never")
    assert told["memory.layer_ttls.session"] == 3600
    assert "memory.scoring.recency_half_life" in lamina("config", "show", env={"COLUMNS": "80"}).out


@pytest.mark.skipif(os.name == "nt", reason="files have no modes there")
def test_doctor_finds_a_database_that_others_may_read(lamina: Lamina, tmp_path: Path) -> None:
    lamina("remember", "a note")
    assert lamina("doctor").code == 0
    (tmp_path / "data" / "lamina.db").chmod(0o644)
    run = lamina("doctor")
    assert (run.code, "chmod 600" in run.out) == (1, True)


def test_doctor_tells_of_each_check_and_warns_without_failing(lamina: Lamina) -> None:
    lamina("remember", "all of our talk " * 200, "--owner", "mira")
    run = lamina("doctor", "--json")
    checks = {each["id"]: each for each in run.document["checks"]}
    assert (run.code, run.document["problems"]) == (0, [])
    assert checks["memories-long"]["status"] == checks["owner-without-memories"]["status"] == "warning"
    assert checks["settings-invalid"] == {
        "id": "settings-invalid",
        "status": "ok",
        "found": "the settings can be read",
        "remedy": "",
    }
    told = lamina("doctor")
    assert (told.code, "Warning: " in told.out, "(memories-long)" in told.out) == (0, True, True)
    assert "Nothing is broken; see the warnings." in told.out


def test_doctor_tells_of_a_model_that_cannot_be_made_in_its_document_too(lamina: Lamina) -> None:
    run = lamina("doctor", "--json", env={"LAMINA_MODEL": "nobody:model"})
    assert run.code == 1
    assert any("nobody" in problem for problem in run.document["problems"])
    assert [each["id"] for each in run.document["checks"] if each["status"] == "error"] == ["model-unusable"]


@pytest.mark.parametrize(("name", "told"), [("list", 1), ("stats", 1), ("recall x", 0), ("doctor", 0)])
def test_another_model_in_the_store_is_told_once(process: Lamina, name: str, told: int) -> None:
    process("remember", "a note", env={"LAMINA_EMBEDDER": "builtin"})
    run = process(*name.split(), env={"LAMINA_EMBEDDER": "ollama:other", "COLUMNS": "1000"})
    assert run.err.count("ollama:other") == told
    assert run.out.count("not of ollama:other") + run.out.count("embedder is ollama:other") == 1 - told


def test_vacuum_tells_how_large_the_file_was_and_is(lamina: Lamina, tmp_path: Path) -> None:
    lamina("remember", "one")
    told = lamina("vacuum", "--json").document
    assert told["bytes_after"] <= told["bytes_before"]
    assert f"{told['bytes_after']:,} after." in lamina("vacuum").out

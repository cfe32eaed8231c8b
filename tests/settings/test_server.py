"""The settings of the server."""

from __future__ import annotations

import pytest

from lamina.errors import ConfigError
from lamina.settings import RateLimit, ServerConfig, define_config, load_config
from lamina.settings.server import is_loopback


def test_by_default_it_listens_on_this_machine_alone():
    server = define_config().server
    assert (server.host, server.port, server.workers) == ("127.0.0.1", 8765, 1)
    assert is_loopback(server.host)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("LOCALHOST", True),
        ("0.0.0.0", False),  # noqa: S104 - it is what must be seen
        ("::", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example", False),
        ("10.0.0.1", False),
        ("", False),
    ],
)
def test_loopback_is_known_by_address_and_not_by_looks(host, expected):
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"port": -1}, "server.port"),
        ({"port": 65_536}, "server.port"),
        ({"workers": 0}, "server.workers"),
        ({"max_body_bytes": 0}, "server.max_body_bytes"),
        ({"max_results": 101}, "server.max_results"),
        ({"maintenance_interval": -1}, "server.maintenance_interval"),
        ({"rate_limit": {"per_second": 0}}, "server.rate_limit.per_second"),
        ({"allowed_hosts": ["https://a.example"]}, "server.allowed_hosts"),
        ({"cors_origins": ["a.example"]}, "server.cors_origins"),
        ({"cors_origins": ["*"]}, "server.cors_origins"),
        ({"jwt": {"issuer": "a", "audience": "b"}}, "server.jwt.jwks_url"),
        ({"log_format": "xml"}, "server.log_format"),
        ({"hots": "a"}, "server.hots"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_and_named(settings, field):
    with pytest.raises(ConfigError) as refused:
        define_config(server=settings)
    assert refused.value.field == field


def test_lists_may_be_words_with_commas_as_the_environment_has_them(tmp_path):
    environ = {"LAMINA_SERVER__ALLOWED_HOSTS": "a.example, *.b.example", "LAMINA_SERVER__RATE_LIMIT__BURST": "3"}
    loaded = load_config(environ=environ, start=tmp_path, user_file=tmp_path / "none.toml")
    assert loaded.config.server.allowed_hosts == ("a.example", "*.b.example")
    assert loaded.config.server.rate_limit == RateLimit(burst=3)


def test_a_file_has_a_table_of_the_server_and_its_paths_are_relative_to_it(tmp_path):
    own = tmp_path / "config.toml"
    own.write_text(
        '[server]\nport = 1\nuds = "lamina.sock"\n'
        '[server.jwt]\nissuer = "a"\naudience = "b"\njwks_file = "keys.json"\n',
        encoding="utf-8",
    )
    server = load_config(environ={}, start=tmp_path, user_file=own).config.server
    assert server.uds == tmp_path / "lamina.sock"
    assert server.jwt.jwks_file == tmp_path / "keys.json"


@pytest.mark.parametrize(
    "lines",
    [
        '[server]\ncors_origins = ["https://evil.example"]',
        '[server.jwt]\nissuer = "a"\naudience = "b"\njwks_file = "keys.json"',
        '[server.jwt]\nissuer = "a"\naudience = "b"\njwks_url = "https://evil.example/keys"',
    ],
)
def test_a_projects_file_lets_nobody_in_without_the_users_consent(tmp_path, lines):
    (tmp_path / "lamina.toml").write_text(lines, encoding="utf-8")
    with pytest.raises(ConfigError, match="named by the project's"):
        load_config(environ={}, start=tmp_path, user_file=tmp_path / "none.toml")
    trusted = load_config(environ={"LAMINA_TRUST_PROJECT": "1"}, start=tmp_path, user_file=tmp_path / "none.toml")
    assert trusted.config.server != ServerConfig()

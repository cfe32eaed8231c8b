from __future__ import annotations

import traceback

import pytest

from lamina.databases.postgres import PostgresDatabase
from lamina.databases.postgres.address import parse_url
from lamina.errors import ConfigError, InvalidType

SECRET = "hunter2"


def test_the_place_names_host_port_and_database_only():
    address = parse_url("postgresql://mira:hunter2@db.example:6543/notes?sslmode=require&password=hunter2")
    assert str(address) == "db.example:6543/notes"
    assert SECRET not in repr(address)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgres://db.example/notes", "db.example/notes"),
        ("postgresql://a.example:1,b.example:2/notes", "a.example,b.example:1,2/notes"),
        ("postgresql:///notes?host=/run/postgresql", "/run/postgresql/notes"),
        ("postgresql:///notes", "the local server/notes"),
    ],
)
def test_what_libpq_takes_is_taken(url, place):
    assert str(parse_url(url)) == place


def test_parameters_of_the_url_go_before_our_own_except_for_the_encoding():
    parameters = parse_url("postgresql://h/d?application_name=mine&client_encoding=latin1").parameters
    assert parameters["application_name"] == "mine"
    assert parameters["client_encoding"] == "utf8"
    assert parameters["keepalives_idle"] == 30


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://mira:hun@hunter2@db.example/notes",
        "postgresql://mira:x/hunter2@db.example/notes",
        "postgresql://mira:1/hunter2@db.example/notes",
        "postgresql://mira:hunter2%zz@db.example/notes",
        "postgresql://mira:hunter2@db.example:port/notes",
        "postgresql://mira:p#x/hunter2@db.example/notes",
        "postgresql://mira:hunter2@db.example/notes?no_such_option=1",
        "postgresql://mira:hunter2\x00@db.example/notes",
        "mysql://mira:hunter2@db.example/notes",
        "host=db.example password=hunter2",
        "",
    ],
)
def test_what_cannot_be_read_is_refused_without_a_word_of_it(url):
    with pytest.raises(ConfigError) as raised:
        PostgresDatabase(url)
    assert SECRET not in "".join(traceback.format_exception_only(raised.value))
    assert raised.value.__context__ is None or raised.value.__suppress_context__
    assert "postgresql://user:password@host:port/database" in str(raised.value)


def test_what_is_no_text_is_refused():
    with pytest.raises(InvalidType, match="url"):
        PostgresDatabase(None)


@pytest.mark.parametrize(
    "limit",
    [
        {"connections": 0},
        {"connections": 2.5},
        {"connections": True},
        {"connections": 1001},
        {"connect_timeout": 0},
        {"connect_timeout": float("nan")},
        {"connect_timeout": "10"},
        {"statement_timeout": -1},
        {"statement_timeout": float("inf")},
    ],
)
def test_a_limit_that_is_none_is_refused(limit):
    with pytest.raises(ConfigError, match=next(iter(limit))):
        PostgresDatabase("postgresql://h/d", **limit)

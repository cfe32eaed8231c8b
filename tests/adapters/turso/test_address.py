from pathlib import Path

import pytest

from lamina.adapters.turso import TursoAdapter
from lamina.adapters.turso.address import address_of
from lamina.errors import ConfigError


@pytest.mark.parametrize(
    ("url", "address", "place"),
    [
        ("libsql://notes-mira.turso.io", "https://notes-mira.turso.io", "notes-mira.turso.io"),
        ("https://notes.example:8443/db/", "https://notes.example:8443/db", "notes.example:8443"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080", "127.0.0.1:8080"),
        ("libsql://localhost:8080?tls=0", "http://localhost:8080", "localhost:8080"),
        ("http://[::1]:8080", "http://[::1]:8080", "[::1]:8080"),
    ],
)
def test_a_url_names_a_remote_database(url: str, address: str, place: str) -> None:
    found = address_of(url, None, None, "token")
    assert (found.url, found.path, found.place) == (address, None, place)


@pytest.mark.parametrize(
    "url", ["notes.db", "file:notes.db", "folder/notes.db", "/var/lib/notes.db", Path("/n.db").as_uri()]
)
def test_a_path_names_a_file(url: str) -> None:
    found = address_of(url, None, None, None)
    assert found.url is None
    assert found.path == Path(url.removeprefix("file:").removeprefix("//"))


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({}, "url"),
        ({"url": "libsql://h", "path": "notes.db"}, "url"),
        ({"url": ""}, "url"),
        ({"url": "ftp://h"}, "url"),
        ({"url": "wss://h"}, "url"),
        ({"url": "https://"}, "url"),
        ({"url": "https://h:x"}, "url"),
        ({"url": "https://mira:hidden@h"}, "url"),
        ({"url": "libsql://h?authToken=hidden"}, "url"),
        ({"url": ":memory:"}, "url"),
        ({"path": ":memory:"}, "path"),
        ({"path": ""}, "path"),
        ({"path": "/"}, "path"),
        ({"path": "notes.db", "auth_token": "hidden"}, "auth_token"),
        ({"path": "notes.db", "replica_path": "r.db"}, "replica_path"),
        ({"url": "libsql://h", "replica_path": ":memory:"}, "replica_path"),
        ({"url": "libsql://h", "auth_token": ""}, "auth_token"),
        ({"url": "libsql://h", "auth_token": "hid\nden"}, "auth_token"),
        ({"url": "libsql://h", "table": "a-b"}, "table"),
        ({"url": "libsql://h", "table": "x" * 64}, "table"),
        ({"url": "libsql://h", "table": 'x"; DROP TABLE y; --'}, "table"),
        ({"url": "libsql://h", "table": "sqlite_x"}, "table"),
        ({"url": "libsql://h", "timeout": 0}, "timeout"),
        ({"url": "libsql://h", "connect_timeout": float("nan")}, "connect_timeout"),
        ({"url": "libsql://h", "busy_timeout": "1"}, "busy_timeout"),
        ({"url": "libsql://h", "sync_every": -1}, "sync_every"),
        ({"url": "libsql://h", "threads": 0}, "threads"),
        ({"url": "libsql://h", "threads": True}, "threads"),
    ],
)
def test_wrong_options_are_refused_by_name(options, field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        TursoAdapter(**options)
    assert caught.value.field == field
    assert "hidden" not in str(caught.value)

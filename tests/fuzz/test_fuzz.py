"""The short form of fuzzing: some inputs for each target, always the same ones. `make fuzz` is the long one."""

from __future__ import annotations

import random
import sqlite3

import pytest
import served_targets
import targets

ALL = targets.TARGETS | served_targets.SERVED
SLOW = {
    "backups": 30,
    "documents": 6,
    "settings": 15,
    "words_of_queries": 25,
    "rendering": 20,
    "http_requests": 40,
    "mcp_messages": 40,
}
INPUTS = 80


@pytest.fixture(scope="module", autouse=True)
def closed():
    yield
    if served_targets.served.cache_info().currsize:
        served_targets.served().close()
        served_targets.served.cache_clear()


def tried(name):
    chance = random.Random(name)
    for number in range(SLOW.get(name, INPUTS)):
        data = chance.randbytes(4 << number % 7)
        try:
            ALL[name](data)
        except Exception as error:
            error.add_note(f"tests/fuzz/fuzz.py {name} --input {data.hex()}")
            raise


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ALL)
def test_whatever_comes_is_taken_or_refused(name):
    tried(name)


@pytest.mark.parametrize(
    ("name", "part", "fault"),
    [
        ("import_lines", "read_line", {}.__getitem__),  # raises what is none of our errors
        ("secrets", "masked", lambda text, _: text),  # lets through
        ("backups", "restore", lambda _, target, **__: target.unlink()),  # loses
    ],
)
def test_a_planted_fault_is_found(monkeypatch, name, part, fault):
    monkeypatch.setattr(targets, part, fault)
    with pytest.raises((KeyError, AssertionError, sqlite3.OperationalError)):
        tried(name)

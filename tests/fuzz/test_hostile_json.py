"""JSON that is no more than a nuisance for one reader and the end of another, at each border where it may come in."""

from __future__ import annotations

import json

import pytest
import typer
from served_targets import served
from targets import may_refuse

from lamina.cli import values
from lamina.errors import LaminaError
from lamina.importers.ndjson import import_ndjson

DEEP = 100_000
REFUSED = {
    "deep lists": "[" * DEEP + "]" * DEEP,
    "deep objects": '{"a":' * DEEP + "1" + "}" * DEEP,
    "lists without an end": "[" * DEEP,
    "many digits": "9" * 5_000,
    "a number without bounds": "1e999",
    "NaN": "NaN",
    "Infinity": "-Infinity",
    "many names": "{" + ",".join(f'"{n}":0' for n in range(100_000)) + "}",
    "NUL": '"\0"',
    "no JSON": "'a'",
}
EITHER = {
    "a name twice": '{"a":1,"a":2}',
    "half a character": '"\\ud800"',
    "a name with half a character": '{"\\udfff":1}',
    "NUL, escaped": '"\\u0000"',
    "beyond 64 bits": str(2**70),
    "a mark of the byte order within": '"\ufeff"',
}
ALL = REFUSED | EITHER


def over_http(text):
    body = f'{{"content":"Ann likes tea.","metadata":{{"x":{text}}}}}'.encode()
    status, answer = served().ask("POST", "/v1/memories", body, {})
    assert status < 500, answer
    return status < 400


def over_mcp(text):
    return taken_over_mcp(f'{{"content":"Ann likes tea.","metadata":{{"x":{text}}}}}')


def over_mcp_as_text(text):
    """Some clients send an object as its JSON text."""
    return taken_over_mcp(json.dumps({"content": "Ann likes tea.", "metadata": f'{{"x":{text}}}'}))


def taken_over_mcp(arguments):
    call = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"add_memory","arguments":{arguments}}}}}'
    status, answer = served().ask("POST", "/mcp", call.encode(), {"Accept": "application/json, text/event-stream"})
    assert status < 500, answer
    return status < 400 and b'"isError":true' not in answer


def by_import(text):
    engine = served().kernel.memory_engine
    line = f'{{"content":"Ann likes tea.","metadata":{{"x":{text}}}}}'
    try:
        return served().run(import_ndjson(engine, [line])).written > 0
    except LaminaError:
        return False


def by_command(text):
    """What `--where` is read as; whatever it is, a search takes or refuses it."""
    with may_refuse(typer.BadParameter):
        where = values.read_where(f'{{"x":{text}}}')
        served().run(served().kernel.memory_engine.query(where=where))
        return True
    return False


BORDERS = [over_http, over_mcp, over_mcp_as_text, by_import, by_command]


@pytest.fixture(scope="module", autouse=True)
def closed():
    yield
    served().close()
    served.cache_clear()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("kind", ALL)
def test_it_is_taken_whole_or_refused_and_nothing_is_written(border, kind):
    count = served().kernel.memory_engine.count
    before = served().run(count())
    taken = border(ALL[kind])
    assert not (taken and kind in REFUSED)
    if not taken:
        assert served().run(count()) == before

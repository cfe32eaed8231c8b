"""What an adapter may be told, and how it says what it may not."""

import pytest

from lamina.adapters.redis import RedisAdapter
from lamina.errors import AdapterError, ConfigError, InvalidType
from lamina.testing.memory_contract.material import MINE, ids, listed, memory


@pytest.mark.parametrize(
    "url",
    [
        "http://:hunter2@localhost",
        "localhost:6379",
        "redis://:hunter2@localhost:port/0",
        "redis://:hunter@2@localhost/x/",
        "redis://:hunter2@localhost/0?socket_timeout=5",
        "redis://:hunter2@localhost/0?decode_responses=true",
        "unix://:hunter2@localhost",
        "unix:///hunter2\ud800",
        "",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_and_not_repeated(url):
    with pytest.raises(ConfigError) as refusal:
        RedisAdapter(url)
    assert refusal.value.field == "url"
    assert "hunter" not in str(refusal.value)


def test_a_url_is_text():
    with pytest.raises(InvalidType):
        RedisAdapter(None)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("table", ""),
        ("table", "a-b"),
        ("table", "x" * 64),
        ("table", "é"),
        ("table", None),
        ("prefix", "a{b}"),
        ("prefix", "a*"),
        ("prefix", "a\nb"),
        ("prefix", None),
        ("timeout", 0),
        ("timeout", True),
        ("timeout", "5"),
        ("timeout", float("nan")),
        ("connect_timeout", -1),
        ("index_timeout", 86_401),
        ("threads", 0),
        ("threads", 1.5),
        ("accept_eviction", "yes"),
        ("query_engine", 1),
    ],
)
def test_an_option_that_cannot_be_used_is_named(option, value):
    with pytest.raises(ConfigError) as refusal:
        RedisAdapter(**{option: value})
    assert refusal.value.field == option


async def test_a_socket_of_unix_will_do_too(redis_server, opened):
    adapter = await opened(f"unix://{redis_server.socket}?db=0")
    await adapter.store(MINE, memory())
    assert ids(await listed(adapter)) == ["m1"]


async def test_an_engine_that_is_asked_for_must_be_there(plain_redis_server, opened):
    with pytest.raises(AdapterError, match="has no query engine"):
        await opened(plain_redis_server.url, query_engine=True)

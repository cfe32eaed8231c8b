"""Options are checked before anything is connected, and a URL is shown nowhere."""

import pytest

from lamina.adapters.mongodb import MongoDBAdapter
from lamina.errors import ConfigError, InvalidType

URL = "mongodb://mira:hunter2@db.example:27018/notes?retryWrites=true"


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("url", {"url": "postgresql://db.example/notes"}),
        ("url", {"url": "mongodb://mira:hun@ter2@db.example/notes"}),
        ("url", {"url": "mongodb://mira:hun/ter2@db.example/notes"}),
        ("url", {"url": "mongodb+srv://mira:hun/ter2@db.example/notes"}),
        ("url", {"url": "mongodb+srv://mira:hun@ter2@db.example/notes"}),
        ("url", {"url": "mongodb://"}),
        ("url", {"url": "mongodb://db.example:port/notes"}),
        ("database", {"database": "a.b"}),
        ("database", {"database": "$cmd"}),
        ("database", {"database": "x" * 64}),
        ("table", {"table": "a.history"}),
        ("table", {"table": "system.users"}),
        ("table", {"table": "1st"}),
        ("table", {"table": "x" * 64}),
        ("table", {"table": ""}),
        ("collection", {"collection": "a b"}),
        ("collection", {"table": "one", "collection": "two"}),
        ("vector_index", {"vector_index": " "}),
        ("timeout", {"timeout": 0}),
        ("timeout", {"timeout": float("nan")}),
        ("connect_timeout", {"connect_timeout": -1}),
        ("connections", {"connections": 0}),
    ],
)
def test_a_wrong_option_is_named_and_the_url_is_not_repeated(field, options):
    with pytest.raises(ConfigError) as refusal:
        MongoDBAdapter(**{"url": URL, **options})
    assert refusal.value.field == field
    assert not any(secret in str(refusal.value) for secret in ("mira", "hunter2", "hun", "ter2"))


def test_a_url_that_is_no_text_is_refused():
    with pytest.raises(InvalidType):
        MongoDBAdapter(None)


@pytest.mark.parametrize(
    ("url", "options", "place"),
    [
        (URL, {}, "db.example:27018/notes/lamina_memories"),
        (URL, {"database": "other", "collection": "mine"}, "db.example:27018/other/mine"),
        ("mongodb://a.example,b.example:1/", {"table": "t"}, "a.example:27017,b.example:1/lamina/t"),
        ("mongodb+srv://mira:hunter2@cluster.example/notes", {}, "cluster.example/notes/lamina_memories"),
        ("mongodb+srv://mira:hunter2@cluster.example", {}, "cluster.example/lamina/lamina_memories"),
    ],
)
def test_what_is_shown_is_the_place_alone(url, options, place):
    assert repr(MongoDBAdapter(url, **options)) == f"MongoDBAdapter('{place}')"


def test_of_a_collection_its_other_name_is_enough():
    assert repr(MongoDBAdapter(URL, table="mine", collection="mine")).endswith("/mine')")

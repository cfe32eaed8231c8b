"""What the adapter may be told, and what it says of itself."""

import pytest

from lamina.adapters.dynamodb import DynamoDBAdapter
from lamina.errors import ConfigError


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("table", {"table": "ab"}),
        ("table", {"table": "a-b"}),
        ("table", {"table": "x" * 64}),
        ("table", {"table": "täble"}),
        ("table", {"table": 7}),
        ("table_name", {"table_name": "ab"}),
        ("table_name", {"table": "memories", "table_name": "others"}),
        ("endpoint", {"url": "http://a:1", "endpoint": "http://b:1"}),
        ("region", {"region": "not a region"}),
        ("region", {"region": "eu.example.com/"}),
        ("url", {"url": "db.example:8000"}),
        ("url", {"url": "http://"}),
        ("url", {"url": "http://host:port"}),
        ("url", {"url": "http://user:pay-roll@host"}),
        ("url", {"url": "http://host/?key=pay-roll"}),
        ("url", {"url": 7}),
        ("secret_access_key", {"access_key_id": "x"}),
        ("secret_access_key", {"secret_access_key": "pay-roll"}),
        ("secret_access_key", {"session_token": "pay-roll"}),
        ("session_token", {"access_key_id": "x", "secret_access_key": "y", "session_token": 7}),
        ("connect_timeout", {"connect_timeout": 0}),
        ("timeout", {"timeout": float("nan")}),
        ("timeout", {"timeout": True}),
        ("retries", {"retries": -1}),
        ("threads", {"threads": 1.5}),
    ],
)
def test_a_wrong_option_is_refused_by_name(field, options):
    with pytest.raises(ConfigError) as refusal:
        DynamoDBAdapter(**options)
    assert refusal.value.field == field
    assert "pay-roll" not in str(refusal.value)


def test_it_shows_where_it_is_and_no_secret():
    adapter = DynamoDBAdapter("https://db.example:8000/path", access_key_id="AKIA", secret_access_key="pay-roll")
    assert repr(adapter) == "DynamoDBAdapter(lamina_memories in db.example:8000)"
    assert repr(DynamoDBAdapter(region="eu-central-1", table="notes")) == "DynamoDBAdapter(notes in eu-central-1)"
    assert repr(DynamoDBAdapter(url="http://a:1", endpoint="http://a:1", table_name="notes")).endswith("(notes in a:1)")

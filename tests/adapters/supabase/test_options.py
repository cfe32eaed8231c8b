"""What the adapter is told is checked when it is made, and kept to itself."""

import pytest

from lamina.adapters.supabase import SupabaseAdapter
from lamina.errors import ConfigError

URL = "https://abcdefghijklmnopqrst.supabase.co"

WRONG = {
    "no address": ("url", {"url": "abcdefgh"}),
    "not text": ("url", {"url": 7}),
    "another scheme": ("url", {"url": "postgresql://host/db"}),
    "credentials": ("url", {"url": "https://user:secret@host"}),
    "a query": ("url", {"url": f"{URL}?apikey=secret"}),
    "a port that is none": ("url", {"url": "https://host:secret"}),
    "no key": ("anon_key", {"service_key": None}),
    "an empty key": ("service_key", {"service_key": ""}),
    "a key with a line feed": ("service_key", {"service_key": "secret\n"}),
    "an odd key": ("service_key", {"service_key": "sécret"}),
    "two public keys": ("api_key", {"service_key": None, "anon_key": "a", "api_key": "b"}),
    "a user's token beside the service's key": ("user_token", {"user_token": "secret"}),
    "an odd token": ("user_token", {"service_key": None, "anon_key": "a", "user_token": "secret "}),
    "a token without a project": ("project_ref", {"url": "https://api.example", "access_token": "secret"}),
    "no database": ("database_url", {"database_url": "secret"}),
    "a table": ("table", {"table": "a-b"}),
    "a schema": ("schema", {"schema": "a-b"}),
    "no threads": ("threads", {"threads": 0}),
    "half a thread": ("threads", {"threads": 1.5}),
    "no time": ("timeout", {"timeout": 0}),
    "fewer than no retries": ("retries", {"retries": -1}),
    "true": ("retries", {"retries": True}),
}


@pytest.mark.parametrize(("field", "options"), WRONG.values(), ids=WRONG)
def test_wrong_options_are_refused_by_name_and_not_quoted(field, options):
    with pytest.raises(ConfigError) as refusal:
        SupabaseAdapter(**{"url": URL, "service_key": "sb_secret_x", **options})
    assert refusal.value.field == field
    assert "secret" not in str(refusal.value).replace("secret key", "")


def test_keys_are_in_no_representation():
    adapter = SupabaseAdapter(
        URL, service_key="sb_secret_x", access_token="sbp_x", database_url="postgresql://u:secret@h/d"
    )
    assert repr(adapter) == "SupabaseAdapter('abcdefghijklmnopqrst.supabase.co', table='lamina_memories')"
    assert "sb_secret_x" not in repr(adapter._keys)


def test_the_anon_key_goes_by_either_name():
    for name in ("anon_key", "api_key"):
        adapter = SupabaseAdapter(URL, **{name: "eyJ.a.b"}, user_token="eyJ.c.d")
        assert adapter._keys.headers() == {"apikey": "eyJ.a.b", "Authorization": "Bearer eyJ.c.d"}


def test_a_key_that_is_no_token_is_not_sent_as_one():
    assert SupabaseAdapter(URL, service_key="sb_secret_x")._keys.headers() == {"apikey": "sb_secret_x"}

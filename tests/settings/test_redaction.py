import json

from lamina.settings import LaminaConfig, redacted


def test_secrets_urls_and_objects_are_shown_without_what_is_secret() -> None:
    config = LaminaConfig(
        model={"provider": "openai", "api_key": "sk-abcdefghijklmnopqrstuvwxyz"},
        memory={
            "url": "postgres://mira:pa:ss@db.example/x?sslmode=on&authToken=tok123&key=k9",
            "embedding": {"api_key": "short-key"},
            "options": {"auth_token": "in options", "threads": 4, "region": "eu"},
            "embed_batch": print,
            "layer_ttls": {"session": 5},
        },
    )
    shown = redacted(config)
    text = json.dumps(shown)
    assert shown["model"]["api_key"] == "sk-a…wxyz"
    assert shown["memory"]["embedding"]["api_key"] == "***"
    assert shown["memory"]["url"] == "postgres://mira:***@db.example/x?sslmode=on&authToken=***&key=***"
    assert shown["memory"]["embed_batch"] == "<print>"
    assert shown["memory"]["options"] == {"auth_token": "***", "threads": 4, "region": "eu"}
    assert shown["memory"]["layer_ttls"] == {"session": 5.0}
    assert not any(secret in text for secret in ("pa:ss", "tok123", "k9", "short-key", "ijkl", "in options"))


def test_every_default_can_be_shown_as_json() -> None:
    assert json.loads(json.dumps(redacted(LaminaConfig())))["memory"]["search_mode"] == "hybrid"

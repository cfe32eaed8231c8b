from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lamina.domain.api_token import ApiToken, token_digest
from lamina.state.sqlite import SqliteServerStore

Lamina = Callable[..., Any]


def listed(lamina: Lamina, *options: str) -> list[dict[str, Any]]:
    tokens: list[dict[str, Any]] = lamina("token", "list", "--json", *options).document["tokens"]
    return tokens


def test_the_secret_is_printed_once_alone_and_is_kept_nowhere(lamina: Lamina, tmp_path: Path) -> None:
    run = lamina("token", "create", "--label", "the laptop")
    assert run.code == 0
    secret = run.out.strip()
    assert run.out == f"{secret}\n"
    assert secret.startswith("lamina_")
    assert len(secret) == len("lamina_") + 43
    assert secret not in run.err
    [file] = tmp_path.rglob("lamina.db")
    kept = b"".join(each.read_bytes() for each in tmp_path.rglob("*") if each.is_file())
    assert secret.encode() not in kept
    assert secret.removeprefix("lamina_").encode() not in kept
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT digest FROM lamina_server_tokens").fetchall() == [(token_digest(secret),)]
    for options in ((), ("--json",), ("--json", "--nl")):
        shown = lamina("token", "list", *options)
        assert "the laptop" in shown.out
        assert secret not in shown.out + shown.err
        assert token_digest(secret) not in shown.out + shown.err


def test_what_was_created_is_found_by_the_secret(lamina: Lamina, tmp_path: Path) -> None:
    made = lamina(
        *("token", "create", "--tenant", "acme", "-u", "mira", "--scope", "read", "--expires", "90d", "--json")
    ).document
    [file] = tmp_path.rglob("lamina.db")
    digest = token_digest(made.pop("secret"))

    async def found() -> ApiToken | None:
        async with SqliteServerStore(file) as store:
            return await store.find_token(digest)

    token = asyncio.run(found())
    assert token is not None
    assert (token.id, token.tenant, token.owner, sorted(token.scopes)) == (made["id"], "acme", "mira", ["read"])
    assert token.expires_at is not None
    assert (token.expires_at - token.created_at).days == 90
    assert made == listed(lamina)[0]


def test_two_tokens_have_nothing_in_common(lamina: Lamina) -> None:
    one, two = (lamina("token", "create", "--json").document for _ in range(2))
    assert one["secret"][7:20] != two["secret"][7:20]
    assert one["id"] != two["id"]
    assert (one["scopes"], one["owner"], one["tenant"]) == (["read", "write"], None, "default")


def test_tokens_are_listed_of_all_tenants_or_of_one_in_pages(lamina: Lamina) -> None:
    ids = [lamina("token", "create", "--tenant", tenant, "--json").document["id"] for tenant in ("a", "a_", "a%", "a")]
    newest_first = ids[::-1]
    assert [each["id"] for each in listed(lamina)] == newest_first
    assert [each["id"] for each in listed(lamina, "--tenant", "a")] == [ids[3], ids[0]]
    page = lamina("token", "list", "--json", "--limit", "2", "--offset", "1").document
    assert ([each["id"] for each in page["tokens"]], page["more"]) == (newest_first[1:3], True)
    assert "--offset 3 shows the next" in lamina("token", "list", "--limit", "2", "--offset", "1").err
    assert [each["id"] for each in lamina("token", "list", "--json", "--nl").lines] == newest_first


def test_a_token_is_revoked_once_and_in_its_own_tenant_alone(lamina: Lamina) -> None:
    id = lamina("token", "create", "--tenant", "a_", "--json").document["id"]
    other = lamina("token", "revoke", id, "--tenant", "a")
    assert (other.code, other.out) == (1, "")
    assert other.err == f"Error: No API token here has the id {id!r}, or it is revoked already.\n"
    assert listed(lamina)[0]["status"] == "valid"
    assert lamina("token", "revoke", id, "--tenant", "a_").out == "Revoked.\n"
    assert listed(lamina)[0]["status"] == "revoked"
    assert lamina("token", "revoke", id).code == 1
    assert lamina("token", "revoke", "tok_nobody", "--json").code == 1


def test_a_token_that_is_over_is_shown_so(lamina: Lamina) -> None:
    assert lamina("token", "create", "--expires", "9999-01-31").code == 0
    assert "valid" in lamina("token", "list").out
    for wrong in ("soon", "0d", "2001-01-31", "-1d"):
        run = lamina("token", "create", f"--expires={wrong}")
        assert (run.code, run.out) == (2, "")
        assert "--expires" in run.err
    assert len(listed(lamina)) == 1


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--scope", "everything"), 2),
        (("--tenant", "lamina:meta"), 2),
        (("--tenant", " "), 1),
        (("--label", "x" * 201), 2),
        (("--owner", "x" * 513), 2),
        (("--namespace", "work"), 2),
    ],
)
def test_what_no_token_can_have_is_refused_and_nothing_is_made(
    lamina: Lamina, options: tuple[str, str], code: int
) -> None:
    run = lamina("token", "create", *options)
    assert (run.code, run.out) == (code, "")
    assert lamina("token", "create").code == 0
    assert len(listed(lamina)) == 1


def test_a_hostile_label_does_not_reach_the_terminal(lamina: Lamina) -> None:
    lamina("token", "create", "--label", "\x1b[2Jgone\u202e")
    assert "\x1b[2J" not in lamina("token", "list").out
    assert listed(lamina)[0]["label"] == "\x1b[2Jgone\u202e"


def test_listing_makes_no_database(lamina: Lamina, tmp_path: Path) -> None:
    for command in (("list",), ("revoke", "tok_1")):
        assert lamina("token", *command).code == 1
    assert list(tmp_path.rglob("*.db")) == []

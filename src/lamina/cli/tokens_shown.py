"""How API tokens are shown: never with a secret or a digest."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from lamina.cli.output import console, instant, printable
from lamina.domain.api_token import ApiToken

__all__ = ["print_tokens", "token_fields"]


def token_fields(token: ApiToken, now: datetime) -> dict[str, Any]:
    """A token as JSON can carry it."""
    return {
        "id": token.id,
        "tenant": token.tenant,
        "owner": token.owner,
        "scopes": sorted(token.scopes),
        "label": token.label,
        "status": _status(token, now),
        "created_at": instant(token.created_at),
        "expires_at": None if token.expires_at is None else instant(token.expires_at),
        "revoked_at": None if token.revoked_at is None else instant(token.revoked_at),
        "last_used_at": None if token.last_used_at is None else instant(token.last_used_at),
    }


def print_tokens(tokens: Sequence[ApiToken], now: datetime) -> None:
    """A table with a line for each."""
    terminal = console()
    if not tokens:
        terminal.print(Text("Nothing found.", style="dim"))
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("token", "label", "tenant", "owner"):
        table.add_column(name, overflow="fold")
    for name in ("scopes", "status", "last used"):
        table.add_column(name)
    for each in tokens:
        used = "never" if each.last_used_at is None else instant(each.last_used_at)[:16]
        words = (each.id, each.label, each.tenant, each.owner or "everybody")
        table.add_row(*map(printable, words), " ".join(sorted(each.scopes)), _status(each, now), used)
    terminal.print(table)


def _status(token: ApiToken, now: datetime) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "valid" if token.is_valid_at(now) else "expired"

"""Commands on the API tokens of the server: create, list, revoke."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from lamina.cli.command import command, group
from lamina.cli.options import Limit, Lines, Offset
from lamina.cli.session import Session
from lamina.cli.values import check_lines, read_duration
from lamina.domain.api_token import TokenScope
from lamina.errors import TokenNotFound

__all__ = ["register"]

Scopes = Annotated[
    list[TokenScope] | None,
    typer.Option("--scope", help="What it is good for; may be repeated; read and write if left out."),
]
Expires = Annotated[
    str | None,
    typer.Option("--expires", help="After how long it ends (12h, 90d), or at which time.", show_default=False),
]
Label = Annotated[str, typer.Option("--label", help="What it is for, in your words.", show_default=False)]
TokenId = Annotated[str, typer.Argument(metavar="ID", help="The token's id, as list prints it.", show_default=False)]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    tokens = group("Make, list and revoke the tokens that the server lets in.")
    command(
        tokens,
        "create",
        namespaced=False,
        examples=[
            'lamina token create --label "the laptop" --expires 90d',
            "lamina token create --tenant acme -u mira --scope read --json",
        ],
    )(create)
    command(tokens, "list", scoped=False, examples=["lamina token list", "lamina token list --tenant acme --json"])(
        list_
    )
    command(tokens, "revoke", scoped=False, examples=["lamina token revoke tok_0123456789abcdef"])(revoke)
    app.add_typer(tokens, name="token")


async def create(session: Session, *, scope: Scopes = None, expires: Expires = None, label: Label = "") -> None:
    """Make a token and print its secret, which is shown this once and kept nowhere.

    It speaks for the tenant; with an owner, for that owner alone.
    """
    from lamina.cli import output
    from lamina.cli.tokens_shown import token_fields
    from lamina.kernel.api_tokens import issue_token
    from lamina.ports.clock import utc_now

    now = utc_now()
    expires_at = None if expires is None else _end(expires, now)
    async with session.server_store(creates=True) as store:
        token, secret = await issue_token(
            store,
            tenant=session.settings.config.memory.tenant,
            owner=session.reader,
            scopes=scope or (TokenScope.READ, TokenScope.WRITE),
            label=label,
            expires_at=expires_at,
            now=now,
        )
    if session.as_json:
        output.print_json({"secret": secret, **token_fields(token, now)})
        return
    typer.echo(secret)
    output.note(f"This is the secret of {token.id}: keep it well, it is not shown again.")


async def list_(session: Session, *, limit: Limit = 20, offset: Offset = 0, nl: Lines = False) -> None:
    """List tokens, the newest first: of the tenant that an option or a setting names, else of all."""
    from lamina.cli import output
    from lamina.cli.tokens_shown import print_tokens, token_fields
    from lamina.ports.clock import utc_now

    check_lines(session.as_json, nl=nl)
    now = utc_now()
    async with session.server_store() as store:
        found = await store.list_tokens(_named_tenant(session), limit=limit + 1, offset=offset)
    shown = found[:limit]
    if nl:
        output.print_lines(token_fields(each, now) for each in shown)
    elif session.as_json:
        output.print_json({"tokens": [token_fields(each, now) for each in shown], "more": len(found) > limit})
    else:
        print_tokens(shown, now)
        if len(found) > limit:
            output.note(f"There are more; --offset {offset + limit} shows the next.")


async def revoke(session: Session, id: TokenId) -> None:
    """Revoke a token, for good: the server lets it in no more."""
    from lamina.cli import output
    from lamina.ports.clock import utc_now

    async with session.server_store() as store:
        if not await store.revoke_token(id, now=utc_now(), tenant=_named_tenant(session)):
            raise TokenNotFound(id)
    if session.as_json:
        output.print_json({"id": id, "revoked": True})
    else:
        typer.echo("Revoked.")


def _named_tenant(session: Session) -> str | None:
    settings = session.settings
    return settings.config.memory.tenant if settings.is_set("memory.tenant") else None


def _end(text: str, now: datetime) -> datetime:
    """When it ends: a duration from now, or a date or a time, read as UTC where it names no zone."""
    duration = read_duration(text)
    try:
        end = datetime.fromisoformat(text) if duration is None else now + duration
    except ValueError:
        problem = f"{text!r} is neither a duration such as 12h or 90d nor a date such as 2027-01-31"
        raise typer.BadParameter(problem, param_hint="--expires") from None
    end = end.replace(tzinfo=end.tzinfo or UTC)
    if end - now <= timedelta(0):
        raise typer.BadParameter("is over already", param_hint="--expires")
    return end

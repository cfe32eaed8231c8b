"""Commands on threads: list, show, add, history, compact, extract, archive, unarchive, delete."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from lamina.cli.command import command, group
from lamina.cli.confirming import confirm_deletion
from lamina.cli.options import (
    BaseUrl,
    Limit,
    Lines,
    Meta,
    Model,
    Offset,
    OwnId,
    Text,
    ThreadId,
    ThreadIds,
    Yes,
)
from lamina.cli.session import Session
from lamina.cli.values import check_lines, counted, read_metadata, read_text
from lamina.domain.message import Role
from lamina.errors import ScopeError, ThreadNotFound

if TYPE_CHECKING:
    from lamina.conversation.manager import ConversationManager
    from lamina.domain.thread import Thread

__all__ = ["register"]

_PAGE: Final = 500

Status = Annotated[str, typer.Option("--status", help="active, archived or all.")]
SaidBy = Annotated[Role, typer.Option("--role", help="Who says it.")]
Name = Annotated[str | None, typer.Option("--name", help="The speaker's name.", show_default=False)]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    threads = group("Show and change conversations.")
    command(threads, "list", examples=["lamina thread list -u mira", "lamina thread list --status all --json"])(list_)
    command(threads, "show", examples=["lamina thread show trip", "lamina thread show trip --json"])(show)
    command(
        threads,
        "add",
        examples=[
            'lamina thread add trip "Book the window seat" -u mira',
            "cat answer.txt | lamina thread add trip --role assistant",
        ],
    )(add)
    command(
        threads,
        "history",
        examples=["lamina thread history trip", "lamina thread history trip --offset 100 --json --nl"],
    )(history)
    command(
        threads,
        "compact",
        examples=["lamina thread compact trip", "lamina thread compact trip --model ollama:llama3.2"],
    )(compact)
    command(
        threads,
        "extract",
        examples=["lamina thread extract trip --model ollama:llama3.2", "lamina thread extract trip --json"],
    )(extract)
    command(threads, "archive", examples=["lamina thread archive trip"])(archive)
    command(threads, "unarchive", examples=["lamina thread unarchive trip"])(unarchive)
    command(threads, "delete", examples=["lamina thread delete trip", "lamina thread delete trip move --yes"])(delete)
    app.add_typer(threads, name="thread")


async def list_(
    session: Session, *, status: Status = "active", limit: Limit = 20, offset: Offset = 0, nl: Lines = False
) -> None:
    """List threads, the one that was changed last first."""
    from lamina.cli import output
    from lamina.cli.threads_shown import print_threads, thread_fields

    check_lines(session.as_json, nl=nl)
    async with session.kernel() as kernel:
        found = await _listed(session, kernel.conversation, status, offset + limit + 1)
    shown = found[offset : offset + limit]
    if nl:
        output.print_lines(map(thread_fields, shown))
    elif session.as_json:
        output.print_json({"threads": [thread_fields(each) for each in shown], "more": len(found) > offset + limit})
    else:
        print_threads(shown)
        if len(found) > offset + limit:
            output.note(f"There are more; --offset {offset + limit} shows the next.")


async def show(session: Session, id: ThreadId) -> None:
    """Show a thread: what is known of it, the summary of its older messages, and the live ones."""
    from lamina.cli.output import print_json
    from lamina.cli.threads_shown import message_fields, print_messages, print_thread, summary_fields, thread_fields

    async with session.kernel() as kernel:
        thread = await _known(session, kernel.conversation, id)
    if session.as_json:
        summaries = [summary_fields(each) for each in thread.summaries]
        print_json(
            thread_fields(thread)
            | {"summary": next(iter(summaries), None), "messages": [message_fields(each) for each in thread.messages]}
        )
        return
    print_thread(thread)
    print_messages(thread.messages)


async def add(
    session: Session,
    id: ThreadId,
    text: Text = None,
    *,
    role: SaidBy = Role.USER,
    name: Name = None,
    meta: Meta = None,
    message_id: OwnId = None,
    model: Model = None,
    base_url: BaseUrl = None,
) -> None:
    """Add a message to a thread, which is made if there is none, and print the message's id.

    With an --id of your own, adding it again changes nothing. If the thread is due for a summary, it is made:
    by the language model if one is configured, else of extracts. Whatever becomes of it, the message is kept.
    """
    content = read_text(text, what="text")
    metadata = read_metadata(meta or ())
    session = session.saying(model=model, base_url=base_url)
    async with session.kernel(creates=True, with_model=True) as kernel:
        conversation = kernel.conversation
        thread = await conversation.retrieve(id, owner=session.reader)
        if thread is None:
            thread = await conversation.create(id, owner=session.writer, namespace=session.namespace)
        _check_namespace(session, thread)
        message = await conversation.add_message_to_thread(
            id, role, content, owner=session.reader, id=message_id, name=name, metadata=metadata
        )
    if session.as_json:
        from lamina.cli.output import print_json
        from lamina.cli.threads_shown import message_fields

        print_json(message_fields(message))
    else:
        typer.echo(message.id)


async def history(session: Session, id: ThreadId, *, limit: Limit = 100, offset: Offset = 0, nl: Lines = False) -> None:
    """Show a page of all messages that were ever added, oldest first, those too that the summary stands for."""
    from lamina.cli import output
    from lamina.cli.threads_shown import message_fields, print_messages

    check_lines(session.as_json, nl=nl)
    async with session.kernel() as kernel:
        thread = await _known(session, kernel.conversation, id)
        messages = await kernel.conversation.history(id, owner=session.reader, offset=offset, limit=limit)
    if nl:
        output.print_lines(map(message_fields, messages))
    elif session.as_json:
        output.print_json({"messages": [message_fields(each) for each in messages], "total": thread.last_index})
    else:
        print_messages(messages)
        if thread.last_index > offset + len(messages):
            output.note(
                f"{offset + 1} to {offset + len(messages)} of {thread.last_index}; "
                f"--offset {offset + limit} shows the next."
            )


async def compact(session: Session, id: ThreadId, *, model: Model = None, base_url: BaseUrl = None) -> None:
    """Fold the older messages of a thread into its summary now, all but those that always stay.

    The language model writes it if one is configured; else it is made of extracts. Exits with 1 if it failed, in
    which case nothing has changed.
    """
    from lamina.cli.output import note, print_json

    session = session.saying(model=model, base_url=base_url)
    async with session.kernel(with_model=True) as kernel:
        await _known(session, kernel.conversation, id)
        report = await kernel.conversation.compact(id, owner=session.reader)
    if session.as_json:
        print_json(dataclasses.asdict(report))
    else:
        by = "" if report.source is None else f" The summary is by {report.source.value}."
        facts = f" {counted(report.facts_stored, 'fact was', 'facts were')} remembered." if report.facts_stored else ""
        folded = counted(report.compacted, "message", "messages")
        typer.echo(f"{folded} folded, {report.kept} kept in full.{by}{facts}")
        for warning in report.warnings:
            note(warning)
    if report.warnings and not report.compacted:
        raise typer.Exit(1)


async def extract(session: Session, id: ThreadId, *, model: Model = None, base_url: BaseUrl = None) -> None:
    """Have the language model find what the user said about themselves, and remember it; prints the ids.

    Only the user's own words are read. What is known already is confirmed.
    """
    session = session.saying(model=model, base_url=base_url)
    session.check_model("thread extract")
    async with session.kernel(with_model=True) as kernel:
        await _known(session, kernel.conversation, id)
        ids = await kernel.conversation.extract_memories(id, owner=session.reader)
    if session.as_json:
        from lamina.cli.output import print_json

        print_json({"ids": ids})
    else:
        for each in ids:
            typer.echo(each)


async def archive(session: Session, ids: ThreadIds) -> None:
    """Take threads out of use; they can be read, and brought back."""
    async with session.kernel() as kernel:
        for id in ids:
            await _known(session, kernel.conversation, id)
        for id in ids:
            await kernel.conversation.archive(id, owner=session.reader)
    _report(session, "archived", len(ids))


async def unarchive(session: Session, ids: ThreadIds) -> None:
    """Bring archived threads back."""
    async with session.kernel() as kernel:
        for id in ids:
            await _known(session, kernel.conversation, id)
        for id in ids:
            await kernel.conversation.unarchive(id, owner=session.reader)
    _report(session, "unarchived", len(ids))


async def delete(session: Session, ids: ThreadIds, *, yes: Yes = False) -> None:
    """Delete threads with all their messages and summaries.

    Asks first; where nobody can answer, --yes is needed. Memories that were made from them stay.
    """
    async with session.kernel() as kernel:
        for id in ids:
            await _known(session, kernel.conversation, id)
        confirm_deletion(counted(len(ids), "thread", "threads"), yes=yes, look="")
        deleted = [await kernel.conversation.delete(id, owner=session.reader) for id in dict.fromkeys(ids)]
    _report(session, "deleted", sum(deleted))


async def _listed(session: Session, conversation: ConversationManager, status: str, wanted: int) -> list[Thread]:
    """The first so many threads of the session's owner and namespace."""
    found: list[Thread] = []
    after = None
    while len(found) < wanted:
        page = await conversation.list_threads(status, owner=session.reader, limit=_PAGE, after=after)
        found += [each for each in page if session.namespace in {None, each.namespace}]
        if len(page) < _PAGE:
            break
        after = (page[-1].updated_at, page[-1].id)
    return found[:wanted]


async def _known(session: Session, conversation: ConversationManager, id: str) -> Thread:
    """The thread with its live messages.

    Raises:
        ThreadNotFound: there is none.
        ScopeError: it is another owner's, or of another namespace.
    """
    thread = await conversation.retrieve(id, owner=session.reader)
    if thread is None:
        raise ThreadNotFound(id)
    _check_namespace(session, thread)
    return thread


def _check_namespace(session: Session, thread: Thread) -> None:
    if session.namespace not in {None, thread.namespace}:
        raise ScopeError(f"The thread {thread.id!r} is of another namespace.")


def _report(session: Session, done: str, count: int) -> None:
    if session.as_json:
        from lamina.cli.output import print_json

        fields: dict[str, Any] = {done: count}
        print_json(fields)
    else:
        typer.echo(f"{counted(count, 'thread', 'threads')} {done}.")

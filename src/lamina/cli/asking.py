"""Commands that put memories, documents and threads to use: ask, context, chat."""

from __future__ import annotations

import dataclasses
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lamina.cli.command import command
from lamina.cli.options import BaseUrl, Budget, Model, Question, ThreadName
from lamina.cli.session import Session
from lamina.cli.values import read_text
from lamina.domain.context_form import Form
from lamina.errors import AskError, ThreadArchivedError

if TYPE_CHECKING:
    from lamina.domain.context import ComputedContext
    from lamina.domain.intent import IntentResult
    from lamina.kernel import Kernel

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(
        app,
        "ask",
        examples=[
            'lamina ask "which seat do I like?" -u mira --model ollama:llama3.2',
            'lamina ask "and the way back?" -u mira --thread trip --json',
            "git diff | lamina ask - --model http:local --base-url http://localhost:8080/v1",
        ],
        tells=True,
    )(ask)
    command(
        app,
        "context",
        examples=[
            'lamina context "which seat do I like?" -u mira',
            'lamina context "and the way back?" -u mira --thread trip --budget 2000',
            'lamina context "which seat?" --form openai',
        ],
        tells=True,
    )(context)
    command(
        app,
        "chat",
        examples=["lamina chat -u mira --model ollama:llama3.2", "lamina chat --thread trip"],
        tells=True,
    )(chat)


async def ask(
    session: Session,
    question: Question = None,
    *,
    thread: ThreadName = None,
    model: Model = None,
    base_url: BaseUrl = None,
    budget: Budget = None,
) -> None:
    """Ask a language model, which is shown the memories, documents and messages that match.

    The answer is printed as it comes. With --thread, question and answer are kept there, once the answer is whole.
    """
    asked = _goal(question)
    session = session.saying(model=model, base_url=base_url, budget=budget)
    session.check_model("ask")
    fields: dict[str, Any] = {
        "goal": asked,
        "owner": session.writer,
        "thread_id": thread,
        "namespace": session.namespace,
    }
    async with session.kernel(creates=True, with_model=True) as kernel:
        result = await (kernel.submit(**fields) if session.as_json else _spoken(kernel, fields))
    if session.as_json and result.error is None:
        from lamina.cli.output import print_json

        print_json(_answer_document(result))
        return
    from lamina.cli.speaking import tell_warnings

    tell_warnings(result)
    if result.error is not None:
        raise AskError(result, f"The question was not answered. {result.error}")


async def context(
    session: Session,
    question: Question = None,
    *,
    thread: ThreadName = None,
    model: Model = None,
    budget: Budget = None,
    form: Annotated[
        Form | None,
        typer.Option("--form", help="Print what would be sent, and only that, in this shape.", show_default=False),
    ] = None,
) -> None:
    """Show what `lamina ask` would send, what was dropped, and what the tokens are spent on.

    Needs no language model, and contacts none: --model says whose tokens are counted. Nothing is changed, and
    nothing counts as accessed.
    """
    asked = _goal(question)
    session = session.saying(model=model, budget=budget)
    async with session.kernel() as kernel:
        computed = await _computed(kernel, session, asked, thread=thread, form=form)
    _print_computed(session, computed, form)


async def chat(
    session: Session,
    *,
    thread: Annotated[
        str | None,
        typer.Option("--thread", "-t", help="The thread to go on with; by default a new one.", show_default=False),
    ] = None,
    model: Model = None,
    base_url: BaseUrl = None,
    budget: Budget = None,
) -> None:
    """Talk to a language model that remembers; each turn is kept in a thread.

    /help tells the commands. Ctrl-C stops an answer: the question and what was said of the answer are kept.
    In a pipe each line is a turn, and the first that fails ends it.
    """
    if session.as_json:
        raise typer.BadParameter("the chat is for people; `lamina ask --json` is for programs", param_hint="--json")
    session = session.saying(model=model, base_url=base_url, budget=budget)
    session.check_model("chat")
    from lamina.cli.chatting import Chat, new_thread_id

    async with session.kernel(creates=True, with_model=True) as kernel:
        await Chat(kernel, thread_id=thread or new_thread_id(), owner=session.writer, namespace=session.namespace).run()


async def _spoken(kernel: Kernel, fields: dict[str, Any]) -> IntentResult:
    """The result of the intent, whose answer was printed as it came."""
    from lamina.cli.speaking import Speaker

    speaker = Speaker()
    result: IntentResult | None = None
    try:
        async with aclosing(kernel.stream(**fields)) as pieces:
            async for piece in pieces:
                if isinstance(piece, str):
                    speaker.say(piece)
                else:
                    result = piece
    finally:
        speaker.end()
    assert result is not None  # noqa: S101 - a stream that ends has given it
    return result


async def _computed(
    kernel: Kernel, session: Session, goal: str, *, thread: str | None, form: Form | None
) -> ComputedContext:
    """What the built-in assistant would get; nothing is touched."""
    from lamina.cli.output import note
    from lamina.domain.thread import ThreadStatus
    from lamina.kernel.intents import new_intent_id

    if thread is not None:
        head = await kernel.conversation.retrieve(thread, owner=session.writer)
        if head is None:
            note(f"There is no thread {thread!r} yet: asking would begin it.")
        elif head.status is ThreadStatus.ARCHIVED:
            raise ThreadArchivedError(thread)
    named = session.settings.config.model
    return await kernel.context_engine.compute(
        intent_id=new_intent_id(),
        goal=goal,
        owner_id=session.writer,
        thread_id=thread,
        namespace=session.namespace,
        model=None if named is None else named.model,
        form=form,
        touch=False,
    )


def _print_computed(session: Session, computed: ComputedContext, form: Form | None) -> None:
    from lamina.cli.context_shown import context_document, print_context
    from lamina.cli.output import print_json, printable

    if form is None and not session.as_json:
        print_context(computed)
    elif form is None:
        print_json(context_document(computed))
    elif form is Form.OPENAI:
        print_json(computed.to_openai())
    elif form is Form.ANTHROPIC:
        system, messages = computed.to_anthropic()
        print_json({"system": system, "messages": messages})
    elif session.as_json:
        print_json(computed.to_prompt())
    else:
        typer.echo(printable(computed.to_prompt()).plain)


def _answer_document(result: IntentResult) -> dict[str, Any]:
    from lamina.cli.context_shown import spent_document

    return {
        "answer": result.answer,
        "thread_id": result.thread_id,
        "context": None if result.context is None else spent_document(result.context),
        "usage": dataclasses.asdict(result.usage),
        "seconds": round(result.duration, 3),
        "saved": result.saved,
        "warnings": result.warnings,
    }


def _goal(question: str | None) -> str:
    asked = read_text(question, what="question")
    if not asked.strip():
        raise typer.BadParameter("is blank: say what is wanted", param_hint="QUESTION")
    return asked

"""What is fuzzed: each target takes bytes and raises if something is raised, lost or let through that may not be.

What a parser may raise is an error of Lamina's; targets say where it is another one. All else is a finding.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
import shutil
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import typer
from attacks import PLACES, context_with
from feeding import DEEPEST, Feed
from gullible_reader import faults_in, tree_of
from vocabularies import (
    ANSWER_WORDS,
    CONFIG_WORDS,
    FACT_WORDS,
    FILTER_WORDS,
    LINE_WORDS,
    MARKDOWN_WORDS,
    MARKS,
    MESSAGE_WORDS,
    PACK_WORDS,
    PERIOD_WORDS,
    PLUGIN_WORDS,
    SECRET_WORDS,
    SETTING_WORDS,
    SUMMARY_WORDS,
)

from lamina.adapters._shared.where_sql import where_sql
from lamina.cli import values as cli_values
from lamina.context import plugin_results
from lamina.context.render import to_anthropic as context_to_anthropic
from lamina.context.render import to_openai as context_to_openai
from lamina.context.render import to_prompt
from lamina.conversation.structured import summary_from_json, summary_text
from lamina.databases.sqlite.backup import back_up, restore
from lamina.domain.facts import facts_of, paths_of
from lamina.domain.filters import Where
from lamina.domain.image_size import image_size
from lamina.domain.lexical import index_terms, query_terms, similarities
from lamina.domain.message_formats import from_anthropic, from_openai, to_anthropic, to_openai
from lamina.domain.message_json import message_from_json, message_to_json
from lamina.domain.periods import read_periods, time_words
from lamina.domain.secrets import find_secrets, masked
from lamina.domain.text import clean, is_blank
from lamina.errors import LaminaError
from lamina.importers.lines import ExactMemory, read_line, write_line
from lamina.kernel import auto_save
from lamina.kernel.backups import _check_readable
from lamina.kernel.said_facts import said_facts
from lamina.mcp import PROFILES
from lamina.mcp.arguments import Arguments
from lamina.mcp.arguments import read as read_arguments
from lamina.mcp.installing import json_text, toml_text
from lamina.memory.factory import create_memory_engine
from lamina.packs import inputs as pack_inputs
from lamina.packs.pack_rows import REDUCED
from lamina.packs.reducing import reduced
from lamina.providers.structured_output import NotOfSchema, ObjectSchema
from lamina.rag.chunking import ChunkOptions, ChunkStrategy, chunk_text
from lamina.rag.converters import text_of
from lamina.server import paging
from lamina.server.problems import Problem
from lamina.server.strict_json import check_json
from lamina.settings import load_config

Target = Callable[[bytes], None]
REFUSED = LaminaError
MOMENTS = [datetime(2023, 12, 10, 12, tzinfo=UTC), datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]
FACTS = {
    "type": "object",
    "properties": {"facts": {"type": "array", "items": {"type": "object"}}},
    "required": ["facts"],
}


@contextlib.contextmanager
def may_refuse(*others: type[Exception]) -> Iterator[None]:
    with contextlib.suppress(REFUSED, *others):
        yield


@cache
def folder() -> Path:
    """One for the process; files in it are written anew for each input."""
    kept = tempfile.TemporaryDirectory(prefix="lamina-fuzz-")
    folder.kept = kept  # type: ignore[attr-defined]
    return Path(kept.name)


def openai_messages(data: bytes) -> None:
    _converted(Feed(data), from_openai)


def anthropic_messages(data: bytes) -> None:
    _converted(Feed(data), from_anthropic)


def _converted(feed: Feed, read: Callable[[Any], Any]) -> None:
    with may_refuse():
        messages = read([feed.mapping(MESSAGE_WORDS) for _ in range(1 + feed.byte() % 4)])
        kept = [message_to_json(each) for each in messages]
        json.dumps(kept)
        assert repr([message_from_json(each) for each in kept]) == repr(messages)  # no NaN equals itself
        to_openai(messages)
        to_anthropic(messages)


def stored_messages(data: bytes) -> None:
    with may_refuse(ValueError, KeyError, TypeError, AttributeError):  # whoever reads rows translates them
        message = message_from_json(Feed(data).mapping(MESSAGE_WORDS))
        assert message_from_json(message_to_json(message)) == message


def import_lines(data: bytes) -> None:
    feed = Feed(data)
    line = json.dumps(feed.mapping(LINE_WORDS)) if feed.byte() % 4 else feed.text([*LINE_WORDS, *ANSWER_WORDS])
    with may_refuse():
        read = read_line(line)
        if isinstance(read, ExactMemory):
            written = write_line(read.entry, read.fingerprint)
            assert write_line(read_line(written).entry, read.fingerprint) == written


def metadata_filters(data: bytes) -> None:
    with may_refuse():
        where = Where.parse(Feed(data).value(FILTER_WORDS))
        where.matches({"a": {"b": 1}, "status": "open", "due": [1, None]})
        sql = where_sql(where)
        with contextlib.closing(sqlite3.connect(":memory:")) as connection:
            query = f"SELECT {sql.text} FROM (SELECT ? AS metadata) AS m"  # noqa: S608 - what is tried
            connection.execute(query, (*sql.parameters, '{"a": {"b": 1}}')).fetchall()


def words_of_queries(data: bytes) -> None:
    feed = Feed(data)
    text, other = feed.text(), feed.text()
    assert "" not in index_terms(text)
    assert all(term.forms for term in query_terms(other))
    assert all(0 <= each <= 1.000001 for each in similarities(other, [text, other]))


def periods_of_queries(data: bytes) -> None:
    feed = Feed(data)
    now, text = feed.choice(MOMENTS), feed.text(PERIOD_WORDS)
    for period in read_periods(text, now):
        assert period.start < period.end
    time_words(text)


def chunks(data: bytes) -> None:
    feed = Feed(data)
    strategy = feed.choice(list(ChunkStrategy))
    size = 1 + feed.byte()
    text = feed.text(MARKDOWN_WORDS)
    end = 0
    for chunk in chunk_text(
        text, ChunkOptions.read(strategy, size, feed.byte() % size), lambda piece: len(piece.split())
    ):
        assert chunk.start <= chunk.body < chunk.end
        assert is_blank(text[end : chunk.body])
        end = chunk.end
    assert is_blank(text[end:])


def secrets(data: bytes) -> None:
    text = Feed(data).text(SECRET_WORDS)
    spans = find_secrets(text)
    hidden = masked(text, spans)
    assert (hidden == text) == (not spans)
    for span in spans:
        assert 0 <= span.start < span.end <= len(text)


def facts(data: bytes) -> None:
    text = Feed(data).text(FACT_WORDS)
    list(facts_of(text))
    list(paths_of(text))
    assert len(said_facts(text)) <= 5
    for tier in REDUCED:
        assert len(reduced(text, tier)) <= len(text)


def images(data: bytes) -> None:
    feed = Feed(data)
    head = feed.choice(
        (
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
            b"\xff\xd8\xff",
            b"GIF89a",
            b"RIFF\0\0\0\0WEBPVP8 ",
            b"RIFF\0\0\0\0WEBPVP8X",
            b"",
        )
    )
    size = image_size(base64.b64encode(head + feed.rest()).decode())
    assert size is None or min(size) >= 0
    image_size(feed.text())


def json_bodies(data: bytes) -> None:
    feed = Feed(data)
    body = data if feed.byte() % 2 else json.dumps(feed.value(LINE_WORDS)).encode()
    with may_refuse(Problem):
        check_json(body)
        json.loads(body)


def cursors(data: bytes) -> None:
    feed = Feed(data)
    binding = b"list"
    if feed.byte() % 2:  # signed as ours are: the digest is no secret
        position = [feed.value(["a", "\ud800", "x" * 99], DEEPEST) for _ in range(feed.byte() % 3)]
        payload = feed.choice((feed.rest(), json.dumps(position).encode(), b"[" * 12_000, b"[" + b"9" * 5_000 + b"]"))
        signed = bytes([paging._VERSION]) + paging._digest(payload, binding) + payload
        cursor = base64.urlsafe_b64encode(signed).decode().rstrip("=")
    else:
        cursor = feed.text()
    with may_refuse(Problem):
        position = paging._decoded(cursor, binding)
        assert paging._encoded(position, binding)
        page = paging._Paging(10, position, binding)
        for name in ("number", "instant", "name"):
            with may_refuse(Problem):
                json.dumps(str(getattr(page, name)), ensure_ascii=False).encode()


def settings(data: bytes) -> None:
    feed = Feed(data)
    is_toml = feed.byte() % 2
    text = _toml(feed.mapping(SETTING_WORDS)) if is_toml else feed.text([*SETTING_WORDS, *CONFIG_WORDS])
    home = folder() / "settings"
    home.mkdir(exist_ok=True)
    (home / "lamina.toml").write_bytes(text.encode("utf-8", "surrogatepass"))
    variables = {f"LAMINA_{feed.name(SETTING_WORDS).upper()}": feed.text(SETTING_WORDS) for _ in range(feed.byte() % 3)}
    with may_refuse():
        load_config(environ=variables, start=home, user_file=home / "none.toml")


def _toml(values: dict[str, Any]) -> str:
    def told(value: Any) -> str:
        match value:
            case dict():
                return "{" + ", ".join(f"{json.dumps(key)} = {told(each)}" for key, each in value.items()) + "}"
            case list():
                return "[" + ", ".join(map(told, value)) + "]"
            case None:
                return '""'
            case float():
                return str(value).replace("infinity", "inf")
            case _:
                return json.dumps(value)

    return "\n".join(f"{json.dumps(key)} = {told(each)}" for key, each in values.items())


def options_of_commands(data: bytes) -> None:
    feed = Feed(data)
    words = [*FILTER_WORDS, *'90s 15m 12h 30d 2w 1e400 never 2026-01-31 = . {"a": 1}'.split()]
    for read in (cli_values.read_ttl, cli_values.read_age, cli_values.read_cutoff, cli_values.read_where):
        with may_refuse(typer.BadParameter):
            read(feed.text(words))
    with may_refuse(typer.BadParameter):
        cli_values.read_metadata([feed.text(words) for _ in range(feed.byte() % 4)])


@cache
def _kinds_of_arguments() -> list[type[Arguments]]:
    for _ in PROFILES:  # loads their modules
        pass
    found, todo = [], [Arguments]
    while todo:
        kind = todo.pop()
        todo += kind.__subclasses__()
        found.append(kind)
    return sorted(found[1:], key=lambda kind: kind.__qualname__)


def tool_arguments(data: bytes) -> None:
    feed = Feed(data)
    kind = feed.choice(_kinds_of_arguments())
    names = [field.alias or name for name, field in kind.model_fields.items()]
    with may_refuse():
        read_arguments(kind, feed.mapping([*names, *names, *LINE_WORDS, "[]", "{}", '["a"]']))


def plugin_answers(data: bytes) -> None:
    feed = Feed(data)
    for read in (
        plugin_results.read_assembly,
        plugin_results.read_compaction,
        plugin_results.read_bootstrap,
        plugin_results.read_ingestion,
        plugin_results.read_maintenance,
    ):
        with may_refuse():
            read(feed.value(PLUGIN_WORDS))


def pack_memories(data: bytes) -> None:
    feed = Feed(data)
    with may_refuse():
        pack_inputs.read_inputs(feed.value(PACK_WORDS))
    for read in (
        pack_inputs.read_metadata,
        pack_inputs.read_relationships,
        pack_inputs.read_decay,
        pack_inputs.read_confidence,
    ):
        with may_refuse():
            read(feed.value(PACK_WORDS))


@cache
def _schema() -> ObjectSchema:
    return ObjectSchema(FACTS)


def model_answers(data: bytes) -> None:
    feed = Feed(data)
    text = feed.text(ANSWER_WORDS) if feed.byte() % 2 else json.dumps({"facts": feed.value(LINE_WORDS)})
    with may_refuse(NotOfSchema):
        for fact in _schema().parse(text)["facts"]:
            auto_save._read(fact)
    auto_save._read(feed.value(LINE_WORDS))


def summaries(data: bytes) -> None:
    with may_refuse():
        summary = summary_from_json(Feed(data).mapping(SUMMARY_WORDS))
        summary_text(summary)
        again = summary_from_json(summary.to_json())
        assert again.to_json() == summary.to_json() or "nan" in repr(summary).lower()


def rendering(data: bytes) -> None:
    """No text gets out of its place: the tree of marks is that of a calm context."""
    feed = Feed(data)
    text = clean(feed.text(MARKS))  # as it is stored
    if is_blank(text):
        return
    wild = context_with(text, feed.choice(PLACES))
    assert tree_of(to_prompt(wild)) == _calm_tree()
    assert list(faults_in(to_prompt(wild))) == []
    told = context_to_openai(wild)
    assert [each["role"] for each in told] == [each["role"] for each in context_to_openai(context_with())]
    context_to_anthropic(wild)


@cache
def _calm_tree() -> list[object]:
    return tree_of(to_prompt(context_with()))


def files_of_clients(data: bytes) -> None:
    feed = Feed(data)
    editor = feed.choice((json_text, toml_text))
    before = feed.text(CONFIG_WORDS)
    table = {"command": "lamina", "args": ["mcp"]}
    with may_refuse():
        after = editor.with_entry(before, "mcpServers", "lamina", table)
        assert editor.with_entry(after, "mcpServers", "lamina", table) == after
        assert '"lamina"' not in editor.without_entry(after, "mcpServers", "lamina") or "lamina" in before


@cache
def _seeds() -> list[tuple[str, bytes]]:
    """Small files of each kind, made here."""
    content = b"BT /F1 12 Tf 9 9 Td (Hello) Tj ET"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    pdf = b"%PDF-1.4\n" + b"".join(b"%d 0 obj\n%s\nendobj\n" % (n, each) for n, each in enumerate(objects, 1))
    pdf += b"trailer\n<< /Size 6 /Root 1 0 R >>\n%%EOF\n"
    main = "http://schemas.openxmlformats.org/"
    paragraph = "<w:body><w:p><w:r><w:t>Hi</w:t></w:r></w:p></w:body>"
    word = f'<w:document xmlns:w="{main}wordprocessingml/2006/main">{paragraph}</w:document>'
    row = '<sheetData><row r="1"><c r="A1"><v>7</v></c></row></sheetData>'
    sheet = f'<worksheet xmlns="{main}spreadsheetml/2006/main">{row}</worksheet>'
    html = b"<html><body><h1>A</h1><table><tr><td>b</td></tr></table><a href=x>c</a><pre>d</pre></body></html>"
    return [
        ("a.pdf", pdf),
        ("a.docx", _zipped({"word/document.xml": word, "[Content_Types].xml": "<Types/>"})),
        ("a.xlsx", _zipped({"xl/worksheets/sheet1.xml": sheet, "[Content_Types].xml": "<Types/>"})),
        ("a.epub", _zipped({"META-INF/container.xml": "<container/>", "a.xhtml": "<p>a</p>"})),
        ("a.html", html),
        ("a.csv", b"a,b\n1,2\n"),
        ("a.md", b"\xff\xfe# \0A\0"),
    ]


def _zipped(members: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:  # so that what a fuzzer changes stays readable
        for name, text in members.items():
            archive.writestr(name, text)
    return out.getvalue()


def documents(data: bytes) -> None:
    feed = Feed(data)
    name, seed = feed.choice(_seeds())
    with may_refuse():
        assert isinstance(text_of(name, feed.mutated(seed)), str)


@cache
def _backup() -> bytes:
    """Of a file with one memory."""
    source, target = folder() / "source.db", folder() / "made.db"

    async def store() -> None:
        async with await create_memory_engine(provider="sqlite", path=source, embedding="none") as engine:
            await engine.store("Ann likes tea.")

    asyncio.run(store())
    back_up(source, target, check=_check_readable)
    return target.read_bytes()


def backups(data: bytes) -> None:
    """What is no sound backup is refused, and the file that it was to replace stays as it was."""
    seed, feed = _backup(), Feed(data)
    places = folder() / "backups"
    places.mkdir(exist_ok=True)
    backup, target = places / "backup.db", places / "target.db"
    backup.write_bytes(feed.mutated(seed) if feed.byte() % 8 else seed)
    target.write_bytes(b"before")
    try:
        restore(backup, target, force=True, check=_check_readable)
    except REFUSED:
        assert target.read_bytes() == b"before"
        assert {each.name for each in places.iterdir()} <= {"backup.db", "target.db"}
    else:
        with contextlib.closing(sqlite3.connect(f"{target.as_uri()}?mode=rw", uri=True)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    shutil.rmtree(places)


TARGETS: dict[str, Target] = {
    each.__name__: each
    for each in (
        openai_messages,
        anthropic_messages,
        stored_messages,
        import_lines,
        metadata_filters,
        words_of_queries,
        periods_of_queries,
        chunks,
        secrets,
        facts,
        images,
        json_bodies,
        cursors,
        settings,
        options_of_commands,
        tool_arguments,
        plugin_answers,
        pack_memories,
        model_answers,
        summaries,
        rendering,
        files_of_clients,
        documents,
        backups,
    )
}

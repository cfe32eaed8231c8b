"""Names that lead out of their folder, addresses of inner machines, and tokens that nobody was given."""

from __future__ import annotations

import socket
from contextlib import suppress

import pytest
from served import client_of

from lamina.errors import InvalidInput
from lamina.server import create_app

OUTSIDE = [
    "../../etc/hostname",
    "/etc/hostname",
    "..%2f..%2fetc%2fhostname",
    "..\\..\\windows\\win.ini",
    "FILE:///etc/hostname",
    "notes/../../etc/hostname",
    "a\x00b",
    "CON",
    "C:\\secret",
    "\\\\host\\share",
    ".",
    "..",
]


@pytest.fixture
def no_network(monkeypatch):
    """Whoever looks a name up or connects beyond this process fails the test."""
    reached = []

    def refuse(*arguments, **_):
        reached.append(arguments)
        raise AssertionError(f"something was reached: {arguments[-1]}")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    yield
    assert reached == []


@pytest.mark.case("B139")
@pytest.mark.parametrize("name", OUTSIDE)
async def test_a_name_is_a_name_and_reaches_no_file(kernel, http, tools, name, tmp_path):
    before = {path for path in tmp_path.rglob("*") if path.suffix not in (".db-wal", ".db-shm")}
    body = {"content": "some text of a note", "source": name}
    answer = await http.post("/v1/documents", json=body)
    assert answer.status_code in (201, 422)
    if answer.status_code == 201:
        [found] = await kernel.rag.retrieve("text of a note", top_k=5)
        assert found.content == "some text of a note"
    async with tools(profile="files") as call:
        for path in (f"/memories/{name}", name):
            with pytest.raises(AssertionError):
                await call("view", path=path)  # nothing of this machine is shown under any name
            with suppress(AssertionError):  # what is taken is a name among memories, and no file system sees it
                await call("create", path=path, file_text="x")
            with suppress(AssertionError):
                await call("delete", path=path)
    after = {path for path in tmp_path.rglob("*") if path.suffix not in (".db-wal", ".db-shm")}
    assert after == before


INNER = [
    "http://169.254.169.254/latest/meta-data/",
    "http://[::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://2130706433/",
    "http://127.0.0.1:1/",
    "http://localhost/",
    "https://metadata.google.internal/",
    "FILE:///etc/passwd",
    "gopher://127.0.0.1/",
]


@pytest.mark.case("B140")
@pytest.mark.parametrize("address", INNER)
async def test_an_address_is_a_name_and_what_a_document_links_to_is_text(no_network, kernel, tmp_path, address):
    page = f"# A page\n\n![picture]({address}x.png) [link]({address}) <{address}>\n\nThe lamp is lit.\n"
    (tmp_path / "page.md").write_text(page, encoding="utf-8")
    with pytest.raises(InvalidInput):
        await kernel.rag.ingest_file(address)
    await kernel.rag.ingest_file(tmp_path / "page.md", source=address)
    [found] = await kernel.rag.retrieve("is the lamp lit?", top_k=1)
    assert found.source == address
    assert "The lamp is lit." in found.content
    await kernel.memory_engine.store(f"see {address}", source=address)
    url = {"type": "image_url", "image_url": {"url": f"{address}x.png"}}
    await kernel.conversation.add_messages("t", [{"role": "user", "content": [{"type": "text", "text": "look"}, url]}])
    await kernel.context_engine.compute(intent_id="i", goal="lamp", owner_id="ann", thread_id="t")


@pytest.mark.case("B142")
async def test_only_the_whole_token_opens(kernel):
    token = "t" * 43
    app = create_app(kernel, auth={token})
    wrong = [
        [],
        [""],
        ["Bearer"],
        ["Bearer "],
        [f"Basic {token}"],
        [f"Bearer {token[:-1]}"],
        [f"Bearer {token}x"],
        [f"Bearer {token.upper()}"],
        [f"Bearer Bearer {token}"],
        [f"Bearer {token}", f"Bearer {token}"],
        ["Bearer tökén".encode("latin-1")],
        ["Bearer ☂".encode()],
        ["Bearer " + "a" * 10_000],
    ]
    async with client_of(app, token=None) as http:
        for values in wrong:
            headers = [(b"Authorization", value if isinstance(value, bytes) else value.encode()) for value in values]
            answer = await http.get("/v1/memories", headers=headers)
            assert answer.status_code == 401, values
            assert token not in answer.text
        assert (await http.get("/v1/memories", headers={"Authorization": f"Bearer {token}"})).status_code == 200

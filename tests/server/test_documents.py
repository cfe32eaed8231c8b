"""Documents as a resource."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

ANY = "application/octet-stream"
TEA = "# Tea\n\nGreen tea is brewed at eighty degrees.\n\n# Coffee\n\nCoffee is brewed at ninety-four degrees.\n"


async def ingested(http, **fields):
    answer = await http.post("/v1/documents", json={"content": TEA, "source": "drinks.md", **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()


def docx_of(text):
    """A DOCX by hand, of one paragraph."""
    package = "http://schemas.openxmlformats.org/package/2006"
    document = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    files = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="xml" ContentType='
        '"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/><Default '
        'Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" Type="{document}" '
        'Target="word/document.xml"/></Relationships>',
        "word/document.xml": f'<w:document xmlns:w="{space}"><w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p>'
        "</w:body></w:document>",
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


async def test_a_text_is_taken_in_and_its_chunks_are_its_text(http):
    document = await ingested(http, owner="ann", metadata={"category": "kitchen"}, chunk_size=12, chunk_overlap=0)
    assert (document["source"], document["owner"], document["metadata"]) == (
        "drinks.md",
        "ann",
        {"category": "kitchen"},
    )
    assert (document["chunking"]["size"], document["chunking"]["overlap"]) == (12, 0)
    seen, cursor = [], None
    while True:
        query = {"limit": 1} | ({"cursor": cursor} if cursor else {})
        page = (await http.get(f"/v1/documents/{document['id']}/chunks", params=query)).json()
        seen += page["data"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert len(seen) == document["chunks"] > 1
    assert all(TEA[each["start"] : each["end"]] == each["content"] for each in seen)
    assert (await http.get("/v1/documents/stats")).json() == {"documents": 1, "chunks": len(seen)}


async def test_the_same_source_is_replaced_and_keeps_its_id(http):
    first = await ingested(http)
    assert await ingested(http) == first
    second = await ingested(http, content="Tea is out.")
    assert second["id"] == first["id"]
    assert second["digest"] != first["digest"]
    assert [each["id"] for each in (await http.get("/v1/documents")).json()["data"]] == [first["id"]]


async def test_a_question_finds_the_chunk_that_answers_it(http):
    await ingested(http, chunk_size=15, chunk_overlap=0, metadata={"category": "kitchen"})
    body = {"query": "how hot is green tea brewed", "top_k": 1, "render": True, "where": {"category": "kitchen"}}
    found = (await http.post("/v1/documents/retrieve", json=body)).json()
    (chunk,) = found["data"]
    assert "Green tea" in chunk["content"]
    assert found["degraded"] == []
    assert "[drinks.md]" in found["text"]
    nothing = {**body, "where": {"category": "garden"}}
    assert (await http.post("/v1/documents/retrieve", json=nothing)).json()["data"] == []


@pytest.mark.parametrize(
    ("source", "content_type", "make"),
    [
        ("tea.md", "application/octet-stream", lambda text: text.encode()),
        ("tea", "text/plain; charset=utf-8", lambda text: text.encode()),
        ("tea.docx", "application/octet-stream", docx_of),
        ("tea", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", docx_of),
        ("tea", "text/html", lambda text: f"<p>{text}</p>".encode()),
    ],
)
async def test_a_file_is_taken_in_by_its_type_or_its_name(http, source, content_type, make):
    text = "Green tea is brewed at eighty degrees."
    answer = await http.post(
        "/v1/documents/files",
        params={"source": source, "owner": "ann"},
        content=make(text),
        headers={"Content-Type": content_type},
    )
    assert answer.status_code == 201, answer.text
    assert answer.json()["source"] == source
    chunks = (await http.get(f"/v1/documents/{answer.json()['id']}/chunks")).json()["data"]
    assert [each["content"].strip() for each in chunks] == [text]


async def test_a_file_has_metadata_as_a_text_has_and_is_found_by_them(http):
    metadata = {"category": "kitchen", "Größe": [1, None], "deep": {"a": True}}
    params = {"source": "tea.md", "metadata": json.dumps(metadata)}
    answer = await http.post(
        "/v1/documents/files", params=params, content=TEA.encode(), headers={"Content-Type": "text/markdown"}
    )
    assert (answer.status_code, answer.json()["metadata"]) == (201, metadata), answer.text
    body = {"query": "how hot is green tea brewed", "where": {"category": "kitchen"}}
    assert (await http.post("/v1/documents/retrieve", json=body)).json()["data"]
    parameters = (await http.get("/openapi.json")).json()["paths"]["/v1/documents/files"]["post"]["parameters"]
    (told,) = [each for each in parameters if each["name"] == "metadata"]
    assert told["content"]["application/json"]["example"]["category"] == "kitchen"


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ("", "query.metadata"),
        ("tea", "query.metadata"),
        ("[]", "query.metadata"),
        ('{"a": NaN}', "query.metadata"),
        ('{"a": 1, "a": 2}', "query.metadata"),
        ('{"a": {"b": 1e999}}', "query.metadata.a.b"),
        ('{"a": "\\ud800"}', "query.metadata.a"),
        ('{"a": ' + "[" * 70 + "]" * 70 + "}", "query.metadata"),
        ('{"owner": "bob"}', "query.metadata"),
        ('{"a": "' + "x" * 5000 + '"}', "query.metadata"),
    ],
)
async def test_metadata_of_a_file_that_cannot_be_kept_are_refused_by_name(http, metadata, field):
    params = {"source": "tea.md", "metadata": metadata}
    answer = await http.post("/v1/documents/files", params=params, content=b"x", headers={"Content-Type": ANY})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field), answer.text
    assert (await http.get("/v1/documents")).json()["data"] == []


async def test_a_source_names_no_file_of_the_server(http, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret of the server")
    for source in (str(secret), secret.as_uri(), "../secret.txt", "/etc/passwd.txt"):
        answer = await http.post(
            "/v1/documents/files", params={"source": source}, content=b"harmless", headers={"Content-Type": ANY}
        )
        assert answer.status_code == 201, answer.text
        chunks = (await http.get(f"/v1/documents/{answer.json()['id']}/chunks")).json()["data"]
        assert [each["content"] for each in chunks] == ["harmless"]


@pytest.mark.parametrize(
    ("params", "content_type", "content", "status"),
    [
        ({"source": "a.exe"}, ANY, b"MZ", 415),
        ({"source": "a"}, ANY, b"text", 415),
        ({"source": "a.docx"}, ANY, b"no zip", 422),
        ({"source": "a.txt"}, ANY, b"\xff\xfe\xff", 422),
        ({"source": "a.txt"}, ANY, b"a\x00b", 422),
        ({"source": "a.txt"}, ANY, b"", 422),
        ({"source": "a.txt", "chunk_size": "0"}, ANY, b"text", 422),
        ({"source": "a.txt", "chunk_strategy": "by ear"}, ANY, b"text", 422),
        ({}, "text/plain", b"text", 422),
    ],
)
async def test_a_file_that_cannot_be_read_is_refused(http, params, content_type, content, status):
    headers = {"Content-Type": content_type}
    answer = await http.post("/v1/documents/files", params=params, content=content, headers=headers)
    assert answer.status_code == status, answer.text
    assert status == 415 or answer.json()["errors"][0]["field"]
    assert (await http.get("/v1/documents")).json()["data"] == []


async def test_a_deleted_document_is_gone(http):
    id = (await ingested(http))["id"]
    assert (await http.delete(f"/v1/documents/{id}")).status_code == 204
    for answer in (
        await http.get(f"/v1/documents/{id}"),
        await http.get(f"/v1/documents/{id}/chunks"),
        await http.delete(f"/v1/documents/{id}"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


REFUSED = [
    ("", {"content": " ", "source": "a"}, "content"),
    ("", {"content": "x"}, "source"),
    ("", {"content": "x", "source": ""}, "source"),
    ("", {"content": "x", "source": "a", "path": "/etc/passwd"}, "path"),
    ("", {"content": "x", "source": "a", "chunk_size": 0}, "chunk_size"),
    ("", {"content": "x", "source": "a", "chunk_size": 10**9}, "chunk_size"),
    ("", {"content": "x", "source": "a", "chunk_size": 5, "chunk_overlap": 5}, "chunk_overlap"),
    ("", {"content": "x", "source": "a", "chunk_strategy": "by ear"}, "chunk_strategy"),
    ("", {"content": "x", "source": "a", "metadata": {"owner": "bob"}}, "metadata"),
    ("", {"content": "x", "source": "a", "metadata": {"self": 1}}, "metadata"),
    ("", {"content": "x", "source": "a", "metadata": {"headers": []}}, "metadata"),
    ("", {"content": "x", "source": "a", "metadata": []}, "metadata"),
    ("/retrieve", {"query": " "}, "query"),
    ("/retrieve", {"query": "x", "top_k": 0}, "top_k"),
    ("/retrieve", {"query": "x", "top_k": 10**9}, "top_k"),
    ("/retrieve", {"query": "x", "min_score": 2}, "min_score"),
    ("/retrieve", {"query": "x", "neighbors": -1}, "neighbors"),
    ("/retrieve", {"query": "x", "mode": "guess"}, "mode"),
    ("/retrieve", {"query": "x", "where": {"a": {"no_such": 1}}}, "where"),
]


async def test_what_cannot_be_taken_is_422_and_names_the_field(http):
    for path, body, field in REFUSED:
        answer = await http.post(f"/v1/documents{path}", json=body)
        assert answer.status_code == 422, answer.text
        assert field in answer.json()["errors"][0]["field"]
        assert (await http.get("/v1/documents")).json()["data"] == []

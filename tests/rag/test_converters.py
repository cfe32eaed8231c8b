from __future__ import annotations

import io
import socket
import sys
import tracemalloc
import zipfile
import zlib

import pytest

from lamina.errors import InvalidInput, MissingExtra
from lamina.rag import converters
from lamina.rag.converters import CONVERTED_SUFFIXES, TEXT_SUFFIXES, is_known, text_of


def pdf_of(*pages):
    """A PDF by hand, one line of text a page."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>"]
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects += [f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode()]
    objects += [b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
    out = bytearray(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(out)


def docx_of(*paragraphs):
    """A DOCX by hand; the first paragraph is a heading."""
    body = "".join(
        f"<w:p>{'<w:pPr><w:pStyle w:val=' + chr(34) + 'Heading1' + chr(34) + '/></w:pPr>' if not number else ''}"
        f"<w:r><w:t>{text}</w:t></w:r></w:p>"
        for number, text in enumerate(paragraphs)
    )
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    styles = (
        f'<w:styles xmlns:w="{space}"><w:style w:type="paragraph" w:styleId="Heading1">'
        '<w:name w:val="heading 1"/></w:style></w:styles>'
    )
    relations = "http://schemas.openxmlformats.org/package/2006/relationships"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    files = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{relations}"><Relationship Id="r1" '
        f'Type="{office}/officeDocument" Target="word/document.xml"/></Relationships>',
        "word/_rels/document.xml.rels": f'<Relationships xmlns="{relations}"><Relationship Id="r1" '
        f'Type="{office}/styles" Target="styles.xml"/></Relationships>',
        "word/styles.xml": styles,
        "word/document.xml": f'<w:document xmlns:w="{space}"><w:body>{body}</w:body></w:document>',
    }
    return zipped(files)


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


@pytest.fixture
def _no_network(monkeypatch):
    def refuse(*_args, **_options):
        raise AssertionError("a converter reached for the network")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"plain", "plain"),
        ("päge\r\nzwei\f".encode(), "päge\r\nzwei\f"),
        ("\ufeffmarked".encode(), "marked"),
        ("wide é".encode("utf-16"), "wide é"),
        ("wider é".encode("utf-32"), "wider é"),
        (b"", ""),
    ],
)
def test_text_is_read_as_it_is(data, expected):
    assert text_of("a.md", data) == expected


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"caf\xe9", b"nul\0nul"])
def test_what_is_no_text_is_refused(data):
    with pytest.raises(InvalidInput, match=r"a\.txt"):
        text_of("a.txt", data)


def test_pages_of_a_pdf_are_parted_by_form_feeds():
    assert text_of("a.PDF", pdf_of("First page", "Second page")).split("\f") == ["First page", "Second page"]


def test_a_docx_keeps_its_headings():
    assert text_of("a.docx", docx_of("Title", "Some words.")) == "# Title\n\nSome words."


@pytest.mark.usefixtures("_no_network")
def test_html_becomes_markdown_and_nothing_is_fetched():
    page = (
        "<html><head><script>alert(1)</script><link rel=stylesheet href='http://169.254.169.254/x.css'></head><body>"
        "<h1>Title</h1><p>Some <b>words</b>.</p><img src='http://127.0.0.1:9/a.png'><iframe src='file:"
        "///etc/passwd'>"
        "</iframe><table><tr><th>a</th></tr><tr><td>1</td></tr></table></body></html>"
    )
    text = text_of("a.html", page.encode())
    assert "# Title" in text
    assert "**words**" in text
    assert "| 1 |" in text
    assert "alert" not in text
    assert "root:" not in text


@pytest.mark.parametrize("suffix", sorted(CONVERTED_SUFFIXES - {".html", ".htm"}))
@pytest.mark.parametrize("data", [b"", b"nonsense", b"%PDF-1.7\n garbage", b"PK\x03\x04 garbage"])
def test_a_damaged_file_is_refused_by_name(suffix, data):
    with pytest.raises(InvalidInput, match=f"a{suffix}"):
        text_of(f"a{suffix}", data)


def test_a_file_that_would_unpack_to_too_much_is_refused_before_it_is(monkeypatch):
    monkeypatch.setattr(converters, "MAX_UNPACKED", 100_000)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"0" * 100_001)
    with pytest.raises(InvalidInput, match="unpack to too much"):
        text_of("bomb.docx", out.getvalue())


@pytest.mark.parametrize("name", ["a.exe", "a", "a.mp3", "a.zip", ".md.", "a.png"])
def test_other_kinds_are_unknown(name):
    assert not is_known(name)
    with pytest.raises(InvalidInput, match="cannot be converted"):
        text_of(name, b"x")


@pytest.mark.parametrize(("name", "module"), [("a.pdf", "pypdf"), ("a.html", "markitdown")])
def test_without_the_extra_the_error_names_it(monkeypatch, name, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"lamina\[documents\]"):
        text_of(name, b"x")


def test_no_kind_is_both_text_and_converted():
    assert not TEXT_SUFFIXES & CONVERTED_SUFFIXES


def with_a_size_that_lies(packing):
    """A document whose only member unpacks to 64 MiB, and which says that it is 100 bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packing) as archive:
        archive.writestr("word/document.xml", bytes(64 * 1024 * 1024))
    data = bytearray(out.getvalue())
    entry = data.rfind(b"PK\x01\x02")
    data[entry + 16 : entry + 20] = zlib.crc32(bytes(100)).to_bytes(4, "little")
    data[entry + 24 : entry + 28] = (100).to_bytes(4, "little")
    return bytes(data)


@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_member_that_names_a_smaller_size_than_it_has_is_not_unpacked_beyond_that(packing):
    data = with_a_size_that_lies(packing)
    with pytest.raises(InvalidInput):  # what is imported on first use is not the archive's
        text_of("bomb.docx", data)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput, match=r"bomb\.docx"):
            text_of("bomb.docx", data)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 32 * 1024 * 1024


def test_an_archive_that_is_locked_or_cut_short_is_refused_by_name():
    data = bytearray(zipped({"word/document.xml": "x" * 100_000}))
    data[6] |= 1
    data[data.rfind(b"PK\x01\x02") + 8] |= 1
    for hostile in (bytes(data), zipped({"a": "x" * 1_000})[:-30]):
        with pytest.raises(InvalidInput, match="damaged or locked"):
            text_of("a.docx", hostile)


@pytest.mark.parametrize("sheet", ["xl/worksheets/sheet1.xml", "anywhere"])
@pytest.mark.parametrize("prefix", ["", "x:"])
def test_a_workbook_with_a_cell_that_lies_too_far_out_is_refused_before_it_is_read(sheet, prefix):
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    xmlns = f"xmlns{':x' if prefix else ''}='{space}'"
    cell = f"<{prefix}row r='1048576'><{prefix}c r='XF&#68;1048576'/></{prefix}row>"
    content = f"<{prefix}worksheet {xmlns}><{prefix}sheetData>{cell}</{prefix}sheetData></{prefix}worksheet>"
    with pytest.raises(InvalidInput, match="1048576 rows and 16384 columns"):
        text_of("far.xlsx", zipped({sheet: content}))


@pytest.mark.parametrize("place", ["xfd1048576", "1e9", "1000000000.0", "A" + "9" * 400])
def test_a_place_in_an_odd_spelling_lies_as_far_out(place):
    content = f"<worksheet><sheetData><row r='{place}'><c r='{place}'/></row></sheetData></worksheet>"
    with pytest.raises(InvalidInput, match="save the sheet as CSV"):
        text_of("far.xlsx", zipped({"xl/worksheets/sheet1.xml": content}))


def test_a_workbook_is_read_with_its_values():
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["Pier", "Boats"])
    book.active.append(["north", 7])
    out = io.BytesIO()
    book.save(out)
    assert "| north | 7 |" in text_of("piers.xlsx", out.getvalue())

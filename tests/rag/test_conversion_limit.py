from __future__ import annotations

import io
import zipfile

import pytest

from lamina.errors import InvalidInput
from lamina.rag.conversion_limit import text_within

LARGE = b"<p>" + b"word " * 40_000 + b"</p>"
HOSTILE = b"<div>" * 60_000 + b"<b>" * 60_000


def test_a_file_that_takes_too_long_is_refused_and_its_process_is_over():
    with pytest.raises(InvalidInput, match=r"'deep\.html' takes longer than 0\.05 s to convert"):
        text_within("deep.html", HOSTILE, 0.05)


def test_a_large_file_comes_back_as_it_would_without_a_limit():
    assert text_within("a.html", LARGE, 60).split() == ["word"] * 40_000


def test_what_is_wrong_with_a_large_file_is_told_by_its_own_name():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("word/document.xml", "x" * 200_000)
    with pytest.raises(InvalidInput, match=r"'report\.docx'"):
        text_within("report.docx", packed.getvalue(), 60)


def test_small_files_and_texts_are_read_here(monkeypatch):
    monkeypatch.setattr("lamina.rag.conversion_limit.subprocess", None)
    assert text_within("a.html", b"<p>word</p>", 1) == "word"
    assert text_within("a.txt", b"word " * 100_000, 1).startswith("word")

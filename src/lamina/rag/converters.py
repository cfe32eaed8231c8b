"""Files as text: text and Markdown as they are, PDF page by page, the rest through MarkItDown.

Converters get bytes and never a place to fetch from: nothing that a document links to is read. What they
read is hostile until proven otherwise, so sizes are limited before and after unpacking.
"""

from __future__ import annotations

import codecs
import functools
import io
import re
import shutil
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import PurePath
from typing import Final
from xml.parsers import expat

from lamina.errors import InvalidInput, LaminaError, MissingExtra

__all__ = ["CONVERTED_SUFFIXES", "TEXT_SUFFIXES", "is_known", "text_of"]

TEXT_SUFFIXES: Final = frozenset(
    ".txt .text .md .mdx .markdown .rst .adoc .asciidoc .org .tex .log .csv .tsv .json .jsonl .ndjson .yaml .yml "
    ".toml .ini .cfg .conf .xml .sql .py .pyi .js .jsx .ts .tsx .java .kt .go .rs .c .h .cc .cpp .hpp .cs .rb .php "
    ".sh .bash .ps1 .lua .r .swift .scala .css .scss .vue .srt .vtt".split()
)
"""Read as text."""

CONVERTED_SUFFIXES: Final = frozenset({".pdf", ".html", ".htm", ".docx", ".pptx", ".xlsx", ".epub"})
"""Converted with the extra `documents`."""

_ZIPPED: Final = frozenset({".docx", ".pptx", ".xlsx", ".epub"})
_PACKINGS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_PIECE: Final = 1024 * 1024
MAX_UNPACKED: Final = 512 * 1024 * 1024
MAX_MEMBERS: Final = 10_000
MAX_CELLS: Final = 1_000_000
_CELL: Final = re.compile(r"\s*([A-Za-z]{0,3})([0-9]+(?:\.0*)?(?:[eE]\+?[0-9]+)?)\s*")
"""A row or a cell as readers take them, who read more than writers write."""
_EXTRA: Final = "documents"
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""The longer ones first: UTF-32's begins with UTF-16's."""


def is_known(name: str) -> bool:
    """Whether a file of this name can be converted."""
    return PurePath(name).suffix.lower() in TEXT_SUFFIXES | CONVERTED_SUFFIXES


def text_of(name: str, data: bytes) -> str:
    """The text of a file. Pages of a PDF are parted by form feeds, so that chunks know their page.

    Raises:
        InvalidInput: the kind is unknown, the file is damaged or locked, is no text, or would unpack to too much.
        MissingExtra: the kind needs the extra `documents`.
    """
    suffix = PurePath(name).suffix.lower()
    if suffix in TEXT_SUFFIXES:
        return _decoded(name, data)
    if suffix not in CONVERTED_SUFFIXES:
        remedy = "Convert it to text yourself and call ingest, or give a file of a known kind."
        raise InvalidInput("path", f"{name!r} is of a kind that cannot be converted", remedy)
    if suffix in _ZIPPED:
        data = _repacked(name, data)
    if suffix == ".xlsx":
        _check_cells(name, data)
    return _pdf_text(name, data) if suffix == ".pdf" else _marked_down(name, suffix, data)


def _decoded(name: str, data: bytes) -> str:
    encoding = next((encoding for mark, encoding in _BOMS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        remedy = "Save it as UTF-8, or decode it yourself and call ingest."
        raise InvalidInput("path", f"{name!r} is no text in UTF-8 (at byte {error.start})", remedy) from error
    if "\0" in text:
        raise InvalidInput("path", f"{name!r} holds NUL, so it is no text", "Give a text file.")
    return text


def _members(name: str, archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """What is in the archive, if it may be unpacked."""
    members = archive.infolist()
    if len(members) > MAX_MEMBERS or sum(member.file_size for member in members) > MAX_UNPACKED:
        raise InvalidInput("path", f"{name!r} would unpack to too much", f"The limit is {MAX_UNPACKED} bytes.")
    packings = {member.compress_type for member in members}  # the others cannot be unpacked piece by piece
    if not packings <= _PACKINGS or len(set(archive.namelist())) < len(members):
        raise InvalidInput("path", f"{name!r} is packed in an unusual way", "Save it anew.")
    return members


def _repacked(name: str, data: bytes) -> bytes:
    """The archive packed anew, so that its members really have the sizes that it names.

    An archive may name a small size for a member that unpacks to gigabytes, all of which converters unpack at once;
    here members are read piece by piece, no further than the size that was counted.
    """
    clean = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(clean, "w", zipfile.ZIP_DEFLATED) as copy:
            for member in _members(name, archive):
                with archive.open(member) as packed, copy.open(member.filename, "w") as unpacked:
                    shutil.copyfileobj(packed, unpacked, _PIECE)
    except InvalidInput:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, RuntimeError) as error:
        raise InvalidInput("path", f"{name!r} is damaged or locked: {error}", "Save it anew.") from error
    return clean.getvalue()


def _check_cells(name: str, data: bytes) -> None:
    """Refuse a workbook one cell of which lies so far out that all before it, though empty, are too many to read."""
    furthest = [0, 0]

    def see(tag: str, attributes: dict[str, str]) -> None:
        place = _CELL.fullmatch(attributes.get("r", "")) if tag.endswith(("row", "c")) else None
        if place is not None:
            column = functools.reduce(lambda before, letter: before * 26 + ord(letter) - 64, place[1].upper(), 0)
            row = int(min(float(place[2]), 1e20))
            furthest[:] = [max(furthest[0], row), max(furthest[1], column)]

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.namelist():
            furthest[:] = [0, 0]
            parser = expat.ParserCreate()
            parser.StartElementHandler = see
            with suppress(expat.ExpatError), archive.open(member) as file:  # what is no XML is no sheet
                parser.ParseFile(file)
            if furthest[0] * max(furthest[1], 1) > MAX_CELLS:
                problem = f"{name!r} has a sheet of {furthest[0]} rows and {furthest[1]} columns"
                raise InvalidInput("path", problem, f"The limit is {MAX_CELLS} cells; save the sheet as CSV.")


@contextmanager
def _translated(name: str) -> Iterator[None]:
    """A converter's failure as ours. It meets hostile bytes, so that what it raises has no common base."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about oddities in the file
            yield
    except LaminaError:
        raise
    except (MemoryError, RecursionError):
        raise InvalidInput("path", f"{name!r} is too much for the converter", "Convert it to text yourself.") from None
    except Exception as error:  # the edge to code of others that reads hostile bytes
        problem = f"{name!r} cannot be converted ({type(error).__name__})"
        raise InvalidInput("path", problem, "See whether it opens elsewhere; save it anew.") from error


def _pdf_text(name: str, data: bytes) -> str:
    try:
        from pypdf import PdfReader
    except ImportError as error:
        raise MissingExtra("Reading PDF", _EXTRA) from error
    with _translated(name):
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise InvalidInput("path", f"{name!r} is locked with a password", "Save it without one.")
        return "\f".join((page.extract_text() or "").replace("\f", " ") for page in reader.pages)


def _marked_down(name: str, suffix: str, data: bytes) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from markitdown import MarkItDown, StreamInfo
    except ImportError as error:
        raise MissingExtra(f"Reading {suffix}", _EXTRA) from error
    with _translated(name):
        converter = MarkItDown(enable_plugins=False)
        return str(converter.convert_stream(io.BytesIO(data), stream_info=StreamInfo(extension=suffix)).markdown)

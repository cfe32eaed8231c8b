from __future__ import annotations

import base64
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.domain.image_size import image_size

WIDTHS = st.integers(1, 10_000)


def base(data: bytes) -> str:
    return base64.b64encode(data).decode()


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


def jpeg(width: int, height: int, *, frame: int = 0xC0, camera: int = 0) -> bytes:
    def segment(marker: int, data: bytes) -> bytes:
        return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data

    thumbnails = segment(0xE1, b"Exif\0\0" + b"\xff\xc0" * (camera // 2)) if camera else b""
    tables = segment(0xDB, bytes(65)) + segment(0xC4, bytes(20))
    size = segment(frame, struct.pack(">BHHB", 8, height, width, 3) + bytes(9))
    return b"\xff\xd8" + segment(0xE0, b"JFIF\0") + thumbnails + b"\xff" + tables + size + b"\xff\xda"


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(10)


def webp(width: int, height: int, kind: bytes) -> bytes:
    body = {
        b"VP8 ": bytes(3) + b"\x9d\x01\x2a" + struct.pack("<HH", width, height),
        b"VP8L": b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14),
        b"VP8X": bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"),
    }[kind]
    return b"RIFF" + struct.pack("<I", 100) + b"WEBP" + kind + struct.pack("<I", len(body)) + body + bytes(20)


@given(WIDTHS, WIDTHS)
def test_the_size_of_every_kind_is_read(width, height):
    for data in (
        png(width, height),
        gif(width, height),
        jpeg(width, height),
        jpeg(width, height, frame=0xC2, camera=60_000),
        *(webp(width, height, kind) for kind in (b"VP8 ", b"VP8L", b"VP8X")),
    ):
        assert image_size(base(data)) == (width, height)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GIF89a",
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff\xe0",
        b"\xff\xd8" + b"\xff" * 50,
        b"RIFF1234WEBPVP9 " + bytes(30),
        png(0, 7),
        b"%PDF-1.7" + bytes(100),
        b"<svg width='10' height='10'>",
    ],
)
def test_what_is_no_known_picture_has_no_size(data):
    assert image_size(base(data)) is None


@pytest.mark.parametrize("data", ["not base64 at all!", "é" * 50, "A", "iVBORw0KGgo=" * 5])
def test_what_is_no_base64_has_no_size(data):
    assert image_size(data) is None


@given(st.binary(max_size=200))
def test_no_bytes_make_it_fail(data):
    for head in (b"", b"\xff\xd8", b"RIFF1234WEBPVP8 ", b"\x89PNG\r\n\x1a\n", b"GIF87a"):
        found = image_size(base(head + data))
        assert found is None or min(found) > 0

"""Conversions under a limit of time: large files in a process of their own, which can be ended as no thread can."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import PurePath
from typing import Final

from lamina.errors import InvalidInput, MissingExtra
from lamina.rag.converters import CONVERTED_SUFFIXES, text_of

__all__ = ["text_within"]

_SMALL: Final = 128 * 1024
"""Bytes, unpacked, up to which a file is converted here: what takes a minute at some megabytes takes a moment then."""

_PROGRAM: Final = "from lamina.rag.conversion_limit import main; main()"


def text_within(name: str, data: bytes, seconds: float) -> str:
    """The text of a file, as `text_of` gives it, or `InvalidInput` if a large one takes longer than this.

    Raises:
        InvalidInput: as `text_of`; or the conversion took too long, or its process died.
        MissingExtra: as `text_of`.
    """
    suffix = PurePath(name).suffix.lower()
    if suffix not in CONVERTED_SUFFIXES or _unpacked(data) <= _SMALL or not sys.executable:
        return text_of(name, data)
    # -P: a folder that the program happens to stand in must not lend it modules.
    command = [sys.executable, "-P", "-c", _PROGRAM, f"file{suffix}"]
    try:
        ended = subprocess.run(command, input=data, capture_output=True, timeout=seconds, check=False)  # noqa: S603 - no part of the command is a caller's
    except subprocess.TimeoutExpired:
        remedy = "Convert it to text yourself, or raise the setting rag.convert_seconds."
        raise InvalidInput("path", f"{name!r} takes longer than {seconds:g} s to convert", remedy) from None
    try:
        answer = json.loads(ended.stdout)
    except ValueError:
        raise InvalidInput("path", f"{name!r} is too much for the converter", "Convert it to text yourself.") from None
    if "missing" in answer:
        raise MissingExtra(*answer["missing"])
    if "problem" in answer:
        raise InvalidInput("path", answer["problem"].replace(f"file{suffix}", name, 1), answer["remedy"])
    return str(answer["text"])


def main() -> None:
    """Convert what comes on standard input, of the kind that the name in the arguments has; JSON is the answer."""
    try:
        answer: dict[str, object] = {"text": text_of(sys.argv[1], sys.stdin.buffer.read())}
    except InvalidInput as error:
        answer = {"problem": error.problem, "remedy": error.remedy}
    except MissingExtra as error:
        answer = {"missing": list(error.args)}
    sys.stdout.buffer.write(json.dumps(answer).encode())


def _unpacked(data: bytes) -> int:
    """The size of a file, or what an archive says that its members have; `text_of` looks whether that is true."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return max(len(data), sum(member.file_size for member in archive.infolist()))
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return len(data)

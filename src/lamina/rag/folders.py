"""Reading files, one or a whole folder, without ever leaving the folder."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import stat
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from lamina.domain.document import Document
from lamina.domain.text import clean
from lamina.errors import Conflict, InvalidInput, InvalidType, MissingExtra
from lamina.rag.conversion_limit import text_within
from lamina.rag.converters import is_known
from lamina.rag.ingesting import Ingested
from lamina.rag.reports import IngestFailure, IngestProgress, IngestReport
from lamina.settings.rag import RagConfig

__all__ = ["FolderIngestion", "Ingest", "read_file"]

Ingest: TypeAlias = Callable[[str, str, str], Awaitable[Ingested]]
"""Takes in a content under a source, from the directory of this mark."""

_GLOB: Final = re.compile(r"\*\*/|\*\*|\*|\?|[^*?]+")
_REGEX_OF: Final = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


async def read_file(path: str | os.PathLike[str], config: RagConfig) -> tuple[str, str]:
    """The path as it is given, with forward slashes, and the file's text."""
    given = _path(path)
    return given.as_posix(), await asyncio.to_thread(_read, given, config)


class FolderIngestion:
    """The files of one folder, and which of its documents have lost theirs."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        pattern: str | Iterable[str] | None,
        exclude: str | Iterable[str],
        prefix: str | None,
    ) -> None:
        self._root = _path(path)
        if not os.path.isdir(self._root) or not os.fspath(path):  # noqa: PTH112 - which never raises, as Path.is_dir does
            raise InvalidInput("path", f"{os.fspath(path)!r:.200} is no folder", "Give the path of a folder.")
        if prefix is not None and not isinstance(prefix, str):
            raise InvalidType("prefix", f"must be text, not {type(prefix).__name__}", "Give a str.")
        self._resolved = self._root.resolve()
        self._patterns = None if pattern is None else _read_patterns("pattern", pattern)
        self._excluded = _read_patterns("exclude", exclude)
        start = self._root.as_posix() if prefix is None else prefix.rstrip("/")
        self._prefix = "" if start in {"", "."} else f"{start}/"
        self.mark = hashlib.sha256(os.fsencode(self._resolved)).hexdigest()[:16]
        """Tells this folder from others, in the options of the documents that came from it."""

    async def run(self, ingest: Ingest, config: RagConfig, progress: IngestProgress | None) -> IngestReport:
        """Take in each file in turn; one that cannot be is noted, with the reason."""
        report = IngestReport()
        names = await asyncio.to_thread(lambda: sorted(self._names()))
        for done, name in enumerate(names, start=1):
            source = self._prefix + name
            try:
                content = await asyncio.to_thread(self._content, name, config)
                outcome = await ingest(content, source, self.mark)
            except (InvalidInput, InvalidType, MissingExtra, Conflict) as error:
                report.failed.append(IngestFailure(clean(source), str(error)))
            else:
                (report.ingested if outcome.changed else report.unchanged).append(source)
            if progress is not None:
                progress(done, len(names))
        return report

    def lost(self, head: Document) -> bool:
        """Whether the document came from this folder, and its file is no longer there."""
        if head.options.get("directory") != self.mark or not head.source.startswith(self._prefix):
            return False
        return not os.path.lexists(self._resolved / head.source[len(self._prefix) :])

    def _names(self) -> Iterator[str]:
        """The paths of the files that are wanted, from the folder on, with forward slashes."""
        for folder, folders, files in os.walk(self._resolved, onerror=_fail):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in files:
                below = (Path(folder) / name).relative_to(self._resolved).as_posix()
                if not name.startswith(".") and self._is_wanted(below, name):
                    yield below

    def _is_wanted(self, below: str, name: str) -> bool:
        if any(each.fullmatch(below if has_slash else name) for each, has_slash in self._excluded):
            return False
        if self._patterns is None:
            return is_known(name)
        return any(each.fullmatch(below if has_slash else name) for each, has_slash in self._patterns)

    def _content(self, name: str, config: RagConfig) -> str:
        remedy = "Put the file itself there, or ingest it by ingest_file."
        try:
            path = (self._resolved / name).resolve()
        except (OSError, RuntimeError) as error:
            raise InvalidInput("path", f"{name!r} is a link that leads nowhere", remedy) from error
        if not path.is_relative_to(self._resolved):
            raise InvalidInput("path", f"{name!r} is a link that leads out of the folder", remedy)
        if any(part.startswith(".") for part in path.relative_to(self._resolved).parts):
            raise InvalidInput("path", f"{name!r} is a link to a hidden file", remedy)
        return _read(path, config)


def _path(path: object) -> Path:
    """The path, if it could name something."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise InvalidType("path", f"must be a path, not {type(path).__name__}", "Give a str or a Path.")
    try:
        os.fsencode(path)
    except UnicodeEncodeError as error:
        raise InvalidInput("path", "holds a lone surrogate, which no file name can", "Remove it.") from error
    if "\0" in str(path):
        raise InvalidInput("path", "holds a NUL, which no file name can", "Remove it.")
    return Path(path)


def _fail(error: OSError) -> None:
    raise InvalidInput("path", f"a folder cannot be read: {error}", "See to its permissions, or exclude it.") from error


def _read(path: Path, config: RagConfig) -> str:
    """The text of a regular file; anything else, a pipe or a device, is never opened."""
    max_bytes = config.max_bytes
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise InvalidInput("path", f"{path.name!r} is no regular file", "Give a file.")
        if found.st_size > max_bytes:
            problem = f"{path.name!r} has {found.st_size} bytes, and the limit is {max_bytes}"
            raise InvalidInput("path", problem, "Split it, or raise the setting rag.max_bytes.")
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise InvalidInput("path", f"{path.name!r} cannot be read: {error.strerror}", "Give another path.") from error
    return text_within(path.name, data, config.convert_seconds)


def _read_patterns(field: str, patterns: str | Iterable[str]) -> list[tuple[re.Pattern[str], bool]]:
    """Each glob as an expression, and whether it is about the whole path."""
    if not isinstance(patterns, Iterable):
        raise InvalidType(field, f"must be globs, not {type(patterns).__name__}", "Give a str, or a list of them.")
    read = []
    for glob in [patterns] if isinstance(patterns, str) else patterns:
        if not isinstance(glob, str):
            raise InvalidType(field, f"must be a glob, not {type(glob).__name__}", "Give a str, or a list of them.")
        parts = (_REGEX_OF.get(part, re.escape(part)) for part in _GLOB.findall(glob))
        read.append((re.compile("".join(parts), re.DOTALL), "/" in glob))
    return read

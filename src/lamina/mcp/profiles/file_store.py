"""Files under /memories, kept as memories: no path of a machine is ever touched.

A file's path stands in its metadata under `file`; its content is the path, a colon and the text, so that searches
find it, and so that two files that say the same stay two.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from lamina.domain.filters import Where
from lamina.domain.memory import MemoryEntry
from lamina.domain.text import clean
from lamina.errors import Conflict, InvalidInput, MemoryNotFound
from lamina.mcp.arguments import MAX_TEXT_CHARS
from lamina.mcp.bound_memories import BoundMemories

__all__ = ["ROOT", "File", "FileProblem", "FileStore", "Path"]

ROOT: Final = "/memories"
KEY: Final = "file"
_MAX_PATH_CHARS: Final = 1_000
_MAX_DEPTH: Final = 32
_ATTEMPTS: Final = 20
_REFUSED_CHARACTERS: Final = frozenset(':\\*?"<>|')


class FileProblem(InvalidInput):
    """What is wrong with a command, in the words that models know from tools of this kind."""

    def __init__(self, sentence: str) -> None:
        super().__init__("path", sentence, "")

    def __str__(self) -> str:
        return self.problem


@dataclass(frozen=True, slots=True)
class Path:
    """A path below the root: its parts, none of which leads out. The root has none."""

    parts: tuple[str, ...]

    @classmethod
    def read(cls, given: str) -> Self:
        """The path that a text names.

        Raises:
            FileProblem: it lies outside the root, or a part of it cannot be a name.
        """
        text = unicodedata.normalize("NFC", given)
        root, _, rest = text.partition("/memories")
        if root or (rest and not rest.startswith("/")):
            raise FileProblem(f"Path must start with /memories, got: {given[:200]}")
        parts = tuple(part for part in rest.split("/") if part)
        if any(part in {".", ".."} for part in parts):
            raise FileProblem(f"Path {given[:200]} would escape /memories directory")
        if len(text) > _MAX_PATH_CHARS or len(parts) > _MAX_DEPTH or not all(map(_is_name, parts)):
            raise FileProblem(
                f"Path {given[:200]!r} cannot be used. Use plain names without control characters, surrounding or "
                'doubled spaces, and : \\ * ? " < > |'
            )
        return cls(parts)

    def __str__(self) -> str:
        return "/".join([ROOT, *self.parts])

    def is_below(self, other: Path) -> bool:
        """Whether it lies somewhere in the other one."""
        return len(self.parts) > len(other.parts) and self.parts[: len(other.parts)] == other.parts


@dataclass(frozen=True, slots=True)
class File:
    """A file as it was read."""

    path: Path
    text: str
    id: str
    revision: int


class FileStore:
    """The files of one binding."""

    def __init__(self, memories: BoundMemories) -> None:
        self._memories = memories

    async def load(self) -> dict[Path, File]:
        """All files, by path."""
        files: dict[Path, File] = {}
        async with self._memories.walking(where=Where((KEY, "path")).exists()) as entries:
            async for entry in entries:
                file = self._file(entry)
                if file is not None:
                    files.setdefault(file.path, file)
        return files

    async def read(self, path: Path) -> File | None:
        """The file at the path, if there is one."""
        async with self._memories.walking(where=Where((KEY, "path")).eq(str(path))) as entries:
            async for entry in entries:
                file = self._file(entry)
                if file is not None and file.path == path:
                    return file
        return None

    async def create(self, path: Path, text: str) -> None:
        """Make a file.

        Raises:
            FileProblem: there is a file at the path, or above it.
        """
        files = await self.load()
        self._check_free(path, files)
        for attempt in range(_ATTEMPTS):
            try:
                stored = await self._memories.add(
                    _content(path, text), metadata=_facts(path), id=self._id(path, attempt)
                )
            except Conflict:  # another one at this path by now, or one that began here and was renamed
                if await self.read(path) is not None:
                    raise FileProblem(f"File {path} already exists") from None
            else:
                if stored is None:
                    raise FileProblem(f"File {path} was refused by a rule of this server")
                return
        raise Conflict(f"The path {path}", "it is being changed by others")

    async def edit(self, path: Path, edited: Callable[[str], str]) -> str:
        """Change the text of what the file is by now; the new text.

        Raises:
            FileProblem: there is no such file, or `edited` says so.
        """
        for _ in range(_ATTEMPTS):
            file = await self.read(path)
            if file is None:
                is_folder = any(each.is_below(path) for each in await self.load()) or not path.parts
                told = "is not a file." if is_folder else "does not exist. Please provide a valid path."
                raise FileProblem(f"The path {path} {told}")
            text = edited(file.text)
            if text == file.text:
                return text
            try:
                content = _content(path, text)
                await self._memories.update(file.id, expected_revision=file.revision, content=content)
            except (Conflict, MemoryNotFound):
                continue
            return text
        raise Conflict(f"The file {path}", "it is being changed by others")

    async def delete(self, path: Path) -> int:
        """Delete a file, or a folder with all that is in it; how many files there were."""
        gone = 0
        for each, file in (await self.load()).items():
            if each == path or each.is_below(path):
                gone += await self._forgotten(file)
        return gone

    async def rename(self, old: Path, new: Path) -> None:
        """Move a file, or a folder with all that is in it.

        Raises:
            FileProblem: there is nothing at the old path, or something at the new one.
        """
        files = await self.load()
        moved = {each: file for each, file in files.items() if each == old or each.is_below(old)}
        if not moved:
            raise FileProblem(f"The path {old} does not exist")
        if new in files or any(each.is_below(new) for each in files):
            raise FileProblem(f"The destination {new} already exists")
        if new.is_below(old):
            raise FileProblem(f"The path {old} cannot be moved into itself")
        self._check_free(new, files)
        for each, file in moved.items():
            target = Path(new.parts + each.parts[len(old.parts) :])
            await self._memories.update(
                file.id,
                expected_revision=file.revision,
                content=_content(target, file.text),
                metadata=_facts(target),
            )

    async def _forgotten(self, file: File) -> bool:
        try:
            await self._memories.delete(file.id)
        except MemoryNotFound:
            return False
        return True

    def _file(self, entry: MemoryEntry) -> File | None:
        facts = entry.metadata.get(KEY)
        path = facts.get("path") if isinstance(facts, Mapping) else None
        if not isinstance(path, str) or entry.owner != self._memories.binding.owner:
            return None
        head = f"{path}:\n"
        if not entry.content.startswith(head):
            return None  # an ordinary memory whose metadata happens to have the key
        try:
            return File(Path.read(path), entry.content[len(head) :], entry.id, entry.revision)
        except FileProblem:
            return None

    def _check_free(self, path: Path, files: Mapping[Path, File]) -> None:
        if not path.parts or path in files or any(each.is_below(path) for each in files):
            raise FileProblem(f"File {path} already exists")
        above = next((each for each in files if path.is_below(each)), None)
        if above is not None:
            raise FileProblem(f"The path {above} is a file, and has nothing in it")

    def _id(self, path: Path, attempt: int) -> str:
        """One path of one owner has one id, so that two who make it at once do not make two."""
        binding = self._memories.binding
        named = json.dumps([binding.owner, binding.namespace, str(path), attempt])
        return f"file_{hashlib.sha256(named.encode()).hexdigest()[:40]}"


def _content(path: Path, text: str) -> str:
    cleaned = clean(text)
    if len(cleaned) > MAX_TEXT_CHARS:
        raise FileProblem(f"File {path} would have {len(cleaned)} characters; at most {MAX_TEXT_CHARS} are kept")
    return f"{path}:\n{cleaned}"


def _facts(path: Path) -> dict[str, dict[str, str]]:
    return {KEY: {"path": str(path)}}


def _is_name(part: str) -> bool:
    return (
        part == " ".join(part.split())
        and len(part) <= 255  # noqa: PLR2004 - what file systems take, for exports
        and part.isprintable()
        and not _REFUSED_CHARACTERS & set(part)
    )

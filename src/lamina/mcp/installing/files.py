"""Changing a client's file of settings: a copy of it first, then all at once, or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lamina.errors import Conflict, InvalidInput
from lamina.mcp.installing import json_text, toml_text
from lamina.mcp.installing.clients import Client, Entry

__all__ = ["Change", "install", "shown", "uninstall"]

_MAX_BYTES = 64 * 1024 * 1024
_MOST_BACKUPS = 1_000
_PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class Change:
    """What was done, or with `dry_run` would be: `backup` is the copy of the file as it was, if there was one."""

    file: Path
    changed: bool
    text: str
    backup: Path | None = None


def install(client: Client, file: Path, name: str, entry: Entry, *, dry_run: bool = False) -> Change:
    """Tell the client of the server. Done twice it changes nothing the second time.

    Raises:
        InvalidInput: the file cannot be edited safely; nothing was changed.
        Conflict: somebody else changed the file meanwhile; nothing was changed.
    """
    with_entry = toml_text.with_entry if client.is_toml else json_text.with_entry
    table = entry.table(client)
    return _change(file, lambda text: with_entry(text, client.section, name, table), dry_run=dry_run)


def uninstall(client: Client, file: Path, name: str, *, dry_run: bool = False) -> Change:
    """Take the server out of the client's settings. Raises as `install`."""
    without_entry = toml_text.without_entry if client.is_toml else json_text.without_entry
    return _change(file, lambda text: without_entry(text, client.section, name), dry_run=dry_run)


def shown(client: Client, name: str, entry: Entry) -> str:
    """What belongs into the client's settings, for adding it by hand."""
    with_entry = toml_text.with_entry if client.is_toml else json_text.with_entry
    return with_entry("", client.section, name, entry.table(client))


def _change(file: Path, edited: Callable[[str], str], *, dry_run: bool) -> Change:
    target = file.resolve()  # a link stays one: what it leads to is changed
    before = _read(target)
    after = edited(before or "")
    changed = after != (before or "")
    if not changed or dry_run:
        return Change(file, changed, after)
    backup = None if before is None else _backed_up(target)
    _replace(target, before, after)
    return Change(file, changed=True, text=after, backup=backup)


def _read(file: Path) -> str | None:
    """The text of the file; None where there is none."""
    try:
        if not file.is_file() and file.exists():
            raise InvalidInput("settings", f"{file} is no file", "Nothing was changed.")
        if file.exists() and file.stat().st_size > _MAX_BYTES:
            raise InvalidInput("settings", f"{file} is larger than settings are", "Nothing was changed.")
        return file.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise InvalidInput("settings", f"{file} is not UTF-8", "Nothing was changed. Convert it first.") from error


def _backed_up(file: Path) -> Path:
    """A copy beside the file, with its mode; no former copy is overwritten."""
    for number in range(_MOST_BACKUPS):
        backup = file.with_name(f"{file.name}.lamina-backup{number or ''}")
        with suppress(FileExistsError):
            # Made readable to nobody else first: settings may hold secrets.
            os.close(os.open(backup, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE))
            shutil.copyfile(file, backup)
            shutil.copymode(file, backup)
            return backup
    raise InvalidInput("settings", f"there are {_MOST_BACKUPS} backups of {file}", "Delete some of them first.")


def _replace(file: Path, before: str | None, after: str) -> None:
    """Write the text beside the file, and put it in its place at once."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    fresh = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(after.encode())
            stream.flush()
            os.fsync(stream.fileno())
        if before is not None:
            shutil.copymode(file, fresh)
        _check_unchanged(file, before)
        fresh.replace(file)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _check_unchanged(file: Path, before: str | None) -> None:
    if _read(file) != before:
        raise Conflict(f"The file {file}", "it was changed meanwhile", "Close the client, and try again.")

"""Where the process begins and ends: exit codes, and errors as one line."""

from __future__ import annotations

import difflib
import os
import re
import sys
from typing import Final, TextIO

import typer

from lamina.cli.app import app
from lamina.cli.values import UsageError
from lamina.errors import InvalidInput, InvalidType, LaminaError

__all__ = ["main"]

RUNTIME: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130
READER_GONE: Final = 141
_NOT_ONE_OF: Final = re.compile(r"'([^']*)' is not one of ('.*')")


def main() -> None:
    """Run the command that the arguments name, and exit with the codes above."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        _speak_utf8(stream)
    sys.exit(_run())


def _run() -> int:
    try:
        return _invoke()
    except UsageError as error:
        return _fail(error, _usage_sentence(error), USAGE)
    except (InvalidInput, InvalidType) as error:
        return _fail(error, str(error), USAGE)
    except LaminaError as error:
        return _fail(error, str(error), RUNTIME)
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        return _reader_gone()
    except OSError as error:
        return _fail(error, f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}", RUNTIME)
    except UnicodeDecodeError as error:
        return _fail(error, "the input is not UTF-8. Convert it first", RUNTIME)
    except Exception as error:  # noqa: BLE001 - the edge of the process: a defect of ours must not print a screenful
        return _fail(error, f"{type(error).__name__}: {error}. This is a defect; LAMINA_DEBUG=1 shows where", RUNTIME)


def _invoke() -> int:
    try:
        return int(app(prog_name="lamina", standalone_mode=False) or 0)
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # Typer's library makes an exit of it
            raise ended.__context__ from None
        raise


def _reader_gone() -> int:
    """As in `lamina list | head`: nothing more can be said to it, not even at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return READER_GONE


def _fail(error: BaseException, sentence: str, code: int) -> int:
    if os.environ.get("LAMINA_DEBUG", "").lower() not in {"", "0", "false", "no", "off"}:
        import traceback

        traceback.print_exception(error)
    # One line whatever the error holds, so that a log or a script can rely on it.
    sys.stderr.write(f"Error: {' '.join(sentence.split())}\n")
    return code


def _usage_sentence(error: Exception) -> str:
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    message = message.replace("Value error, ", "")
    if found := _NOT_ONE_OF.search(message):
        close = difflib.get_close_matches(found[1], re.findall("'([^']*)'", found[2]), n=1)
        message = message.rstrip(".") + (f". Did you mean {close[0]!r}?" if close else "")
    context = getattr(error, "ctx", None)
    command = "lamina" if context is None else context.command_path
    end = "" if message.endswith(("?", ".")) else "."
    return f"{message}{end} See `{command} --help`."


def _speak_utf8(stream: TextIO) -> None:
    """Whatever the locale says: memories hold all languages."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(encoding="utf-8", errors="strict" if stream is sys.stdin else "backslashreplace")

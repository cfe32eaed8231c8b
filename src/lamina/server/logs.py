"""Log lines of the server: as text or as JSON, on stderr, each with the id of its request."""

from __future__ import annotations

import json
import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal

__all__ = ["configure_logs", "request_id"]

request_id: ContextVar[str] = ContextVar("request_id", default="-")


def configure_logs(kind: Literal["text", "json"], *, level: int = logging.INFO) -> None:
    """Send the log of this process to stderr: ours from `level` on, everybody else's only warnings."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines() if kind == "json" else _TextLines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    for name in ("lamina", "uvicorn.error"):
        logging.getLogger(name).setLevel(level)


class _JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _instant(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "request_id": request_id.get(),
        }
        facts = getattr(record, "facts", None)
        line |= facts if isinstance(facts, dict) else {"message": record.getMessage()}
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class _TextLines(logging.Formatter):
    """For people: time, level, id, and `name=value` of what there is to say."""

    def format(self, record: logging.LogRecord) -> str:
        facts = getattr(record, "facts", None)
        said = " ".join(f"{key}={value}" for key, value in facts.items()) if facts else record.getMessage()
        line = f"{_instant(record)} {record.levelname:<7} {request_id.get()} {record.name}: {_one_line(said)}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _instant(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _one_line(text: str) -> str:
    """Nothing in it begins a new line or moves the cursor."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)

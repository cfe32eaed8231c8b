"""The clients that can be told of this server: where each keeps its settings, and in which shape."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lamina.errors import InvalidInput

__all__ = ["CLIENTS", "Client", "Entry"]


@dataclass(frozen=True, slots=True)
class Entry:
    """How a client starts the server."""

    command: str
    arguments: tuple[str, ...]

    def table(self, client: Client) -> dict[str, Any]:
        """As the client's settings have it."""
        kind = {"type": "stdio"} if client.says_type else {}
        return {**kind, "command": self.command, "args": list(self.arguments)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client: its file for a user and, where it has one, for a project; and the table that holds its servers."""

    name: str
    title: str
    section: str
    user_file: Callable[[], Path]
    project_file: str | None = None
    is_toml: bool = False
    says_type: bool = False

    def file(self, *, project: Path | None) -> Path:
        """Where the settings are.

        Raises:
            InvalidInput: the client has no settings of projects.
        """
        if project is None:
            return self.user_file()
        if self.project_file is None:
            raise InvalidInput("--project", f"{self.title} has no settings of projects", "Leave it out.")
        return project / self.project_file


def _application_data(*parts: str) -> Path:
    """Below where applications keep their settings on this system."""
    home = Path.home()
    if sys.platform == "darwin":
        return home.joinpath("Library", "Application Support", *parts)
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or home / "AppData" / "Roaming").joinpath(*parts)
    return Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config").joinpath(*parts)


CLIENTS: Final[Mapping[str, Client]] = {
    each.name: each
    for each in (
        Client(
            name="claude-code",
            title="Claude Code",
            section="mcpServers",
            user_file=lambda: Path.home() / ".claude.json",
            project_file=".mcp.json",
            says_type=True,
        ),
        Client(
            name="claude-desktop",
            title="Claude Desktop",
            section="mcpServers",
            user_file=lambda: _application_data("Claude", "claude_desktop_config.json"),
        ),
        Client(
            name="cursor",
            title="Cursor",
            section="mcpServers",
            user_file=lambda: Path.home() / ".cursor" / "mcp.json",
            project_file=".cursor/mcp.json",
        ),
        Client(
            name="codex",
            title="Codex",
            section="mcp_servers",
            user_file=lambda: Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / "config.toml",
            project_file=".codex/config.toml",
            is_toml=True,
        ),
        Client(
            name="vscode",
            title="VS Code",
            section="servers",
            user_file=lambda: _application_data("Code", "User", "mcp.json"),
            project_file=".vscode/mcp.json",
            says_type=True,
        ),
    )
}

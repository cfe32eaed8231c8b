"""Telling MCP clients of this server, in their own files of settings, without harm to what else is in them."""

from lamina.mcp.installing.clients import CLIENTS, Client, Entry
from lamina.mcp.installing.files import Change, install, uninstall

__all__ = ["CLIENTS", "Change", "Client", "Entry", "install", "uninstall"]

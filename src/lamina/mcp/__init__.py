"""The MCP server: memories and computed context for agents that speak the Model Context Protocol."""

from lamina.errors import MissingExtra

try:
    import mcp as _sdk  # noqa: F401 - looked for, so that its absence gets a remedy
except ImportError as error:
    raise MissingExtra("The MCP server", "mcp") from error

from lamina.mcp.binding import Binding
from lamina.mcp.http import BindingOf, McpApp, bearer, mcp_app
from lamina.mcp.server import PROFILES, create_mcp_server
from lamina.mcp.stdio import serve_stdio

__all__ = ["PROFILES", "Binding", "BindingOf", "McpApp", "bearer", "create_mcp_server", "mcp_app", "serve_stdio"]

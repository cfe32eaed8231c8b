"""The HTTP server: everything that the library does, as resources, for teams and for other languages."""

from lamina.errors import MissingExtra

try:
    import fastapi as _fastapi  # noqa: F401 - looked for, so that its absence gets a remedy
except ImportError as error:
    raise MissingExtra("The HTTP server", "server") from error

from lamina.server.app import create_app
from lamina.server.principal import Access, Authenticate, Principal

__all__ = ["Access", "Authenticate", "Principal", "create_app"]

"""The MCP server in the same app: one address, and the same tokens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import Scope

from lamina.domain.memory import DEFAULT_NAME
from lamina.errors import ScopeError
from lamina.kernel import Kernel
from lamina.mcp import Binding, McpApp, create_mcp_server, mcp_app
from lamina.server.authentication import principal_of
from lamina.server.principal import Access

__all__ = ["mount_mcp"]

PATH = "/mcp"


def mount_mcp(app: FastAPI) -> McpApp:
    """Serve MCP over streamable HTTP at `/mcp`; the `lifespan` of what is returned must be entered around the serving.

    A token reaches its owner's memories; one that is bound to no owner those of the owner `default`. Without the
    scope `write` the tools that write are neither offered nor taken. Hosts and origins are checked by the app.
    """

    @asynccontextmanager
    async def kernel_of(tenant: str) -> AsyncIterator[Kernel]:
        yield await app.state.kernels.of(tenant)

    mounted = mcp_app(create_mcp_server(kernel_of), binding_of=_binding_of, rebinding_protection=False)
    app.router.routes.append(Route(PATH, endpoint=mounted))
    return mounted


def _binding_of(scope: Scope) -> Binding:
    principal = principal_of(scope)
    if Access.READ not in principal.access:
        raise ScopeError(f"The token does not have the scope {Access.READ.value!r}.")
    return Binding(
        tenant=principal.tenant,
        owner=DEFAULT_NAME if principal.owner is None else principal.owner,
        read_only=Access.WRITE not in principal.access,
    )

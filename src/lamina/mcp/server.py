"""The MCP server put together: what clients may ask, and whose memories answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, TypeAlias

import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError

from lamina._version import __version__
from lamina.errors import InvalidInput, NotFound, ScopeError
from lamina.kernel import Kernel
from lamina.mcp.arguments import read
from lamina.mcp.binding import Binding
from lamina.mcp.bound_memories import BoundMemories
from lamina.mcp.profiles.chatgpt import CHATGPT
from lamina.mcp.profiles.default import DEFAULT
from lamina.mcp.profiles.files import FILES
from lamina.mcp.profiles.knowledge_graph import KNOWLEDGE_GRAPH
from lamina.mcp.prompts import get_prompt, listed_prompts
from lamina.mcp.refusals import sentence_of
from lamina.mcp.resources import TEMPLATES, listed_resources, read_resource
from lamina.mcp.tool import Tool
from lamina.prompts import render

__all__ = ["BINDING", "PROFILES", "KernelOf", "create_mcp_server"]

PROFILES: Final[Mapping[str, tuple[Tool, ...]]] = {
    "default": DEFAULT,
    "knowledge-graph": KNOWLEDGE_GRAPH,
    "chatgpt": CHATGPT,
    "files": FILES,
}
"""Name of each set of tools → its tools."""

BINDING: Final = "lamina.mcp.binding"
"""Where an ASGI scope holds the binding of its request."""

KernelOf: TypeAlias = Callable[[str], AbstractAsyncContextManager[Kernel]]
"""Gives the started kernel of a tenant, for the length of a block; `TenantKernels.using` is one."""

_Request: TypeAlias = ServerRequestContext[Any, Any]


def create_mcp_server(
    kernel_of: Kernel | KernelOf,
    *,
    binding: Binding | None = None,
    profile: str = "default",
    read_only: bool = False,
) -> Server[Any]:
    """The server, over a started kernel or over the kernels of many tenants; nothing is opened here.

    `binding` says whose memories it serves where a request brings no binding of its own (see `mcp_app`); without
    either a request is refused. `profile` is one of `PROFILES`. With `read_only`, or a binding that is, the tools
    that write are neither offered nor taken.

    Raises:
        InvalidInput: there is no such profile.
    """
    if profile not in PROFILES:
        raise InvalidInput("profile", f"{profile!r} is unknown", f"Use one of: {', '.join(PROFILES)}.")
    handlers = _Handlers(
        _only(kernel_of) if isinstance(kernel_of, Kernel) else kernel_of,
        binding,
        PROFILES[profile],
        read_only=read_only,
    )
    return Server(
        "lamina",
        title="Lamina memory",
        version=__version__,
        description="Memory for agents: search, remember, correct, forget.",
        instructions=render("mcp_instructions"),
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_resource_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        on_completion=handlers.complete,
    )


class _Handlers:
    """What the server does with each kind of request."""

    def __init__(
        self, kernel_of: KernelOf, binding: Binding | None, tools: tuple[Tool, ...], *, read_only: bool
    ) -> None:
        self._kernel_of = kernel_of
        self._binding = binding
        self._tools = {tool.name: tool for tool in tools}
        self._described = {tool.name: tool.described() for tool in tools}
        self._read_only = read_only

    async def list_tools(self, request: _Request, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[self._described[name] for name in self._offered(request)])

    async def call_tool(self, request: _Request, call: types.CallToolRequestParams) -> types.CallToolResult:
        tool = self._offered(request).get(call.name)
        if tool is None:
            known = ", ".join(self._offered(request))
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {call.name[:100]!r} here. There are: {known}.")
        try:
            given = read(tool.arguments, call.arguments or {})
            async with self._memories(request) as memories:
                result = await tool.run(memories, given)
            return types.CallToolResult(
                content=[types.TextContent(text=result.shown())],
                structured_content=result.model_dump(mode="json", by_alias=True),
            )
        except Exception as error:  # noqa: BLE001 - the edge: whatever it is, the client is told what it can use
            return types.CallToolResult(content=[types.TextContent(text=sentence_of(error))], is_error=True)

    async def list_resources(
        self, request: _Request, _: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=listed_resources(self._bound(request).owner))

    async def list_resource_templates(
        self, _: _Request, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=list(TEMPLATES))

    async def read_resource(
        self, request: _Request, asked: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        async with _told(), self._memories(request) as memories:
            return await read_resource(memories, asked.uri)

    async def list_prompts(self, request: _Request, _: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=listed_prompts(writes=self._writes(request)))

    async def get_prompt(self, request: _Request, asked: types.GetPromptRequestParams) -> types.GetPromptResult:
        async with _told(), self._memories(request) as memories:
            return await get_prompt(memories, asked.name, asked.arguments, writes=self._writes(request))

    async def complete(self, request: _Request, asked: types.CompleteRequestParams) -> types.CompleteResult:
        """The only argument that can be guessed is whose profile: the owner's own."""
        owner = self._bound(request).owner
        is_user = isinstance(asked.ref, types.ResourceTemplateReference) and asked.argument.name == "user"
        values = [owner] if is_user and owner.startswith(asked.argument.value) else []
        return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))

    def _bound(self, request: _Request) -> Binding:
        brought = None if request.request is None else request.request.scope.get(BINDING)
        binding = self._binding if brought is None else brought
        if not isinstance(binding, Binding):
            raise MCPError(types.INVALID_REQUEST, "This connection is bound to nobody's memories.")
        return binding

    def _offered(self, request: _Request) -> Mapping[str, Tool]:
        if not (self._read_only or self._bound(request).read_only):
            return self._tools
        return {name: tool for name, tool in self._tools.items() if tool.effect.reads_only}

    def _writes(self, request: _Request) -> bool:
        return any(not tool.effect.reads_only for tool in self._offered(request).values())

    @asynccontextmanager
    async def _memories(self, request: _Request) -> AsyncIterator[BoundMemories]:
        binding = self._bound(request)
        async with self._kernel_of(binding.tenant) as kernel:
            yield BoundMemories(kernel, binding)


@asynccontextmanager
async def _told() -> AsyncIterator[None]:
    """Turns errors into those of the protocol, with the same sentences as a tool's."""
    try:
        yield
    except MCPError:
        raise
    except Exception as error:  # noqa: BLE001 - as for tools
        code = types.INVALID_PARAMS if isinstance(error, InvalidInput | NotFound) else types.INTERNAL_ERROR
        raise MCPError(code, sentence_of(error)) from None


def _only(kernel: Kernel) -> KernelOf:
    """The kernel of one tenant; nobody else's connections reach it."""

    @asynccontextmanager
    async def of(tenant: str) -> AsyncIterator[Kernel]:
        if tenant != kernel.config.memory.tenant:
            raise ScopeError("This server does not serve the tenant of the connection.")
        yield kernel

    return of

"""The scenarios of the public conformance suite that hold for any server.

The others want tools made for the suite; `logging-set-level` wants log messages, which this server does not send.
"""

from __future__ import annotations

import asyncio
import re

import pytest
from served_mcp import served

from lamina.mcp import Binding, create_mcp_server, mcp_app

APPLY = ["server-initialize", "ping", "tools-list", "resources-list", "prompts-list", "completion-complete"]


@pytest.mark.parametrize("stateless", [True, False], ids=["stateless", "stateful"])
@pytest.mark.parametrize("scenario", [*APPLY, "dns-rebinding-protection"])
async def test_the_server_passes_the_scenario(mcp_conformance, kernel, scenario, stateless):
    app = mcp_app(create_mcp_server(kernel, binding=Binding(owner="ann")), stateless_http=stateless)
    async with served(app) as url:
        code, told = await asyncio.to_thread(mcp_conformance.run, url, scenario)
    assert code == 0, told
    assert re.search(r"Passed: ([1-9]\d*)/\1, 0 failed", told), told


async def test_the_suite_notices_a_server_that_does_not_check_hosts(mcp_conformance, kernel):
    app = mcp_app(create_mcp_server(kernel, binding=Binding(owner="ann")), rebinding_protection=False)
    async with served(app) as url:
        code, _ = await asyncio.to_thread(mcp_conformance.run, url, "dns-rebinding-protection")
    assert code != 0

"""The description of the server, tried out against it: every route, with what it allows and what it forbids.

Routes that are added later are covered without a change here.
"""

from __future__ import annotations

import asyncio
import re
import threading
import uuid

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import load_all_checks
from schemathesis.generation.meta import TestPhase
from schemathesis.pytest.lazy import get_all_tests
from schemathesis.specs.openapi.checks import positive_data_acceptance
from served import TOKEN, NoKernels, listening

from lamina.kernel import Kernel, ModelRouter
from lamina.server import create_app
from lamina.server.routes.documents import SUFFIXES
from lamina.settings import ServerConfig
from lamina.testing import HashingEmbedder

EXAMPLES = 4
"""For each route and way of making them; beside the ones at the borders of each parameter."""


@pytest.fixture(scope="module")
def server_url(tmp_path_factory):
    """A server in a thread, over a file."""
    started, stop = threading.Event(), threading.Event()
    place = {}

    async def serve():
        router = ModelRouter(embed=HashingEmbedder())
        async with Kernel(data_dir=tmp_path_factory.mktemp("data"), model_router=router) as kernel:
            await kernel.memory_engine.store("Ann likes tea.", id="known")
            await kernel.packs.create("known", "domain")
            await kernel.packs.add("known", "Ann likes tea.", id="known")
            app = create_app(kernel, auth={TOKEN}, settings=ServerConfig(rate_limited=False))
            async with listening(app) as (host, port, _):
                place["url"] = f"http://{host}:{port}"
                started.set()
                await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    assert started.wait(30)
    yield place["url"]
    stop.set()
    thread.join(30)


@schemathesis.serializer("application/x-ndjson")
def as_lines(_, value):
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


SAID_BY_NO_SCHEMA = {"invalid_input", "invalid_type", "invalid_value", "unsupported", "bad_lines"}
"""What the library itself refuses: filters that cannot be, times in the wrong order, two fields that contradict."""
ALLOWED = {
    # An edit must say what it changes, and that this is another revision is told by no schema.
    "positive_data_acceptance": {"expected-statuses": ["2xx", 401, 403, 404, 409, 412, 428]},
    "missing_required_header": {"expected-statuses": [401, 422, 428]},
}
DESCRIPTION = create_app(NoKernels(), auth={TOKEN}).openapi()
ROUTES = [f"{method.upper()} {path}" for path, methods in DESCRIPTION["paths"].items() for method in methods]


@pytest.fixture(scope="module")
def schema():
    return schemathesis.openapi.from_dict(DESCRIPTION, config=schemathesis.Config.from_dict({"checks": ALLOWED}))


FILES = [each for each in SUFFIXES if each.startswith("application/") and "json" not in each]


@schemathesis.serializer(*FILES)
def files(_, value):
    """Any bytes are tried as files."""
    return value if isinstance(value, bytes) else getattr(value, "data", str(value).encode())


def make_right_what_form_alone_cannot(case):
    """Keys that were used before, and cursors of nothing, are refused for reasons that no schema holds."""
    key = (case.headers or {}).get("Idempotency-Key")
    if isinstance(key, str) and re.fullmatch("[!-~]{1,255}", key):
        case.headers["Idempotency-Key"] = uuid.uuid4().hex
    cursor = (case.query or {}).get("cursor")
    if isinstance(cursor, str) and re.fullmatch("[A-Za-z0-9_-]{1,4096}", cursor):
        del case.query["cursor"]


@pytest.mark.parametrize("route", ROUTES)
def test_the_server_is_as_it_describes_itself(route, schema, server_url):
    # The cases are worked out here: `schema.parametrize` would do so, for seconds, in each process that collects.
    load_all_checks()
    (found,) = get_all_tests(schema=schema.include(name=route), test_func=check, settings=None, given_kwargs={})
    _, check_all = found.ok()
    check_all(server_url=server_url)


@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
def check(case, server_url):
    make_right_what_form_alone_cannot(case)
    response = case.call(base_url=server_url, headers={"Authorization": f"Bearer {TOKEN}"})
    # At the borders some bodies that are said to be right are stand-ins, and are not.
    is_stand_in = case.meta.phase.name is TestPhase.COVERAGE
    excluded = [positive_data_acceptance] if is_stand_in or code_of(response) in SAID_BY_NO_SCHEMA else []
    case.validate_response(response, excluded_checks=excluded)


def code_of(response):
    kind = "".join(response.headers.get("content-type", []))
    if not any(each in kind for each in ("problem+json", "application/json")):
        return None
    told = response.json()
    return told.get("code") or told.get("error", {}).get("code")

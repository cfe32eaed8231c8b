"""A server over a kernel of a real file."""

from __future__ import annotations

import pytest
from served import TOKEN, client_of

from lamina.kernel import Kernel, ModelRouter
from lamina.server import create_app
from lamina.testing import EchoModel, HashingEmbedder


@pytest.fixture
async def kernel(tmp_path):
    router = ModelRouter(EchoModel(), embed=HashingEmbedder())
    async with Kernel(data_dir=tmp_path, model_router=router) as started:
        yield started


@pytest.fixture
def app(kernel):
    return create_app(kernel, auth={TOKEN})


@pytest.fixture
async def http(app):
    async with client_of(app) as client:
        yield client

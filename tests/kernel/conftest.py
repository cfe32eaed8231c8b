"""Kernels over real stores, with a driven clock and models that say what a test gives them to say."""

from __future__ import annotations

import pytest

from lamina.kernel import Kernel, ModelRouter
from lamina.testing import EchoModel, FrozenClock, HashingEmbedder


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture(params=["ephemeral", "file"])
def place(request, tmp_path):
    return {} if request.param == "ephemeral" else {"data_dir": tmp_path / "data"}


@pytest.fixture
def model():
    return EchoModel()


@pytest.fixture
async def open_kernel(clock, model):
    """Starts kernels with any settings, and stops them at the end."""
    kernels = []

    async def open_one(*, complete=model, router=None, options=None, **settings):
        router = router or ModelRouter(complete=complete, embed=HashingEmbedder())
        kernel = Kernel(settings, model_router=router, clock=clock, **(options or {}))
        kernels.append(kernel)
        await kernel.start()
        return kernel

    yield open_one
    for kernel in kernels:
        await kernel.stop()


@pytest.fixture
async def kernel(open_kernel, place):
    return await open_kernel(**place)

"""Every public class has a twin, and every twin all that its class offers."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import import_module

import pytest

import lamina
from lamina import sync
from lamina.ports.state_store import StateStore
from lamina.sdk import ThreadHandle
from lamina.sync.forwarding import Blocking, Resource

WITHOUT_TWIN = {
    "Embedder": "a port, which hosts implement",
    "Reranker": "a port, which hosts implement",
    "LanguageModel": "a port, which hosts implement",
    "MemoryAdapter": "a port, which hosts implement",
    "InMemoryAdapter": "given to an engine, which has a twin",
    "SqliteAdapter": "given to an engine, which has a twin",
    "ModelRouter": "given to a kernel, whose `stop` closes it",
    "BaseContextEngine": "hosts derive from it",
    "SqliteDatabase": "given to stores, which close it",
    "SqliteStateStore": "given to a blocking StateStore",
    "Reducer": "given to ContextPacks; hosts implement it",
    "ExtractiveReducer": "given to ContextPacks",
    "ModelReducer": "given to ContextPacks",
    "PackStore": "given to ContextPacks, which has a twin",
    "SqlitePackStore": "given to ContextPacks, which has a twin",
    "PostgresPackStore": "given to ContextPacks, which has a twin",
    "PostgresStateStore": "given to a blocking StateStore",
}
OTHERS = [ThreadHandle]


def is_async(member: object) -> bool:
    bare = inspect.unwrap(getattr(member, "__func__", member))
    return inspect.iscoroutinefunction(bare) or inspect.isasyncgenfunction(bare)


def public(of: type) -> list[str]:
    return [name for name in dir(of) if not name.startswith("_")]


def waiting(of: type) -> list[str]:
    return [name for name in public(of) if is_async(inspect.getattr_static(of, name))]


EXPORTED = [value for name in lamina.__all__ if isinstance(value := getattr(lamina, name), type)]
ASYNC = [each for each in EXPORTED if waiting(each) and each.__name__ not in WITHOUT_TWIN] + OTHERS
METHODS = [
    (cls, name) for cls in ASYNC for name in public(cls) if callable(getattr(cls, name)) and name != "from_config"
]


def names(value: object) -> str:
    return value.__name__ if isinstance(value, type) else str(value)


def parameters(function: object) -> list[tuple[str, object, object]]:
    """Without `self`."""
    found = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default) for each in found if each.name not in {"self", "cls"}]


def test_every_public_class_with_something_to_await_has_a_twin_or_a_reason_why_not():
    known = {cls.__name__ for cls in ASYNC} | WITHOUT_TWIN.keys()
    assert {each.__name__ for each in EXPORTED if waiting(each)} <= known
    assert set(sync.__all__) == {cls.__name__ for cls in ASYNC} | {"AgentRegistry", "create_memory_engine"}
    assert all(waiting(getattr(lamina, name)) for name in WITHOUT_TWIN)


@pytest.mark.parametrize("cls", ASYNC, ids=names)
def test_a_twin_offers_what_its_class_offers_and_the_object_behind_it(cls):
    twin = getattr(sync, cls.__name__)
    assert issubclass(twin, Blocking)
    assert set(public(cls)) <= set(public(twin))
    own = {"asynchronous", "over", "part", "in_background"}
    own |= {"owning", "close_at_exit"} if issubclass(twin, Resource) else set()
    attributes = {name for name in public(twin) if isinstance(inspect.getattr_static(twin, name), property)}
    assert set(public(twin)) - set(public(cls)) - attributes == own - {"asynchronous"}


@pytest.mark.parametrize(("cls", "name"), METHODS, ids=names)
def test_each_method_has_the_parameters_and_the_documentation_of_its_async_twin_and_blocks(cls, name):
    theirs, ours = getattr(cls, name), getattr(getattr(sync, cls.__name__), name)
    assert parameters(ours) == parameters(theirs)
    assert inspect.getdoc(ours)
    assert name == "expand_tool" or inspect.getdoc(ours) == inspect.getdoc(theirs)
    assert not is_async(ours)


@pytest.mark.parametrize("cls", [cls for cls in ASYNC if cls not in {StateStore, ThreadHandle}], ids=names)
def test_a_twin_is_made_with_the_arguments_of_its_class(cls):
    if cls is lamina.MemoryEngine:  # made by create_memory_engine
        return
    assert parameters(getattr(sync, cls.__name__)) == parameters(cls)


@pytest.mark.parametrize("cls", ASYNC, ids=names)
def test_what_is_a_context_manager_has_a_twin_that_is_one(cls):
    assert hasattr(cls, "__aenter__") == hasattr(getattr(sync, cls.__name__), "__enter__")


def test_an_engine_is_made_with_the_arguments_of_its_async_twin():
    assert parameters(sync.create_memory_engine) == parameters(lamina.create_memory_engine)
    assert parameters(sync.Kernel.from_config) == parameters(lamina.Kernel.from_config)


def test_a_stream_says_that_it_is_an_ordinary_iterator():
    assert inspect.signature(sync.Kernel.stream).return_annotation == "Iterator[str | IntentResult]"
    assert inspect.signature(sync.MemoryEngine.scan).return_annotation == "Iterator[MemoryEntry]"


def test_the_names_are_sorted_and_each_is_public_where_it_lives():
    assert sync.__all__ == sorted(set(sync.__all__)) == sorted(sync._HOME_OF)
    assert dir(sync) == sync.__all__
    for name, home in sync._HOME_OF.items():
        assert name in import_module(home).__all__
        assert inspect.getdoc(getattr(sync, name))
    with pytest.raises(AttributeError, match="no attribute 'Kernal'"):
        _ = sync.Kernal


def test_importing_the_facade_loads_nothing_heavy():
    code = "import sys, lamina.sync; print(*[each for each in ('numpy', 'pydantic', 'anyio') if each in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == []


def test_a_twin_of_the_same_object_is_the_same_twin():
    with sync.Kernel(memory={"embedding": "none"}) as kernel:
        assert kernel.memory_engine is kernel.memory_engine
        assert sync.Kernel.over(kernel.asynchronous) is kernel
        assert sync.Lamina(kernel, owner="mira").get_kernel() is kernel

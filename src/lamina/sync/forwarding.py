"""How a blocking twin forwards to the async object behind it: the one mechanism of the façade.

A twin has a line for each method of its async class. The line takes name, parameters, types and documentation from
the method, and the call goes to the loop in the background.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Concatenate, Final, Generic, ParamSpec, Protocol, Self, TypeVar
from weakref import WeakValueDictionary

from lamina.errors import Unsupported
from lamina.sync.background import Background, background

__all__ = [
    "Blocking",
    "Resource",
    "bare",
    "blocking_function",
    "blocking_iterator",
    "blocking_manager",
    "blocking_method",
    "made_as",
    "made_by",
    "plain_method",
]

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)
B = TypeVar("B")
D = TypeVar("D", bound="Blocking[Any]")


_ASYNC_ITERATOR: Final = re.compile(r"\bAsync(Iterator|Generator)\[")


class Blocking(Generic[A_co]):
    """The blocking twin of the async object `asynchronous`."""

    def __init__(self, asynchronous: A_co) -> None:
        self._asynchronous = asynchronous
        self._background = background()
        _twins.setdefault((type(self), id(asynchronous)), self)

    @property
    def asynchronous(self) -> A_co:
        """The async object behind this one, to be awaited in callbacks."""
        return self._asynchronous

    @classmethod
    def over(cls, asynchronous: A_co) -> Self:  # type: ignore[misc] # it is a constructor, only by another name
        """The twin of an async object that is there already, and that its owner closes; always the same one."""
        twin = _twins.get((cls, id(asynchronous)))
        if not isinstance(twin, cls):
            twin = cls.__new__(cls)
            Blocking.__init__(twin, asynchronous)
        return twin

    def part(self, twin: type[D], asynchronous: Any) -> D:
        """The twin of an object that belongs to the one behind this twin."""
        self.in_background()
        return twin.over(asynchronous)

    def in_background(self) -> Background:
        """The loop that serves this twin.

        Raises:
            Unsupported: this process was forked off the one in which the twin was made.
        """
        if self._background is not background():
            remedy = "Make one in the process that uses it, after the fork."
            raise Unsupported(f"A blocking {type(self).__name__}", "being used in a forked process", remedy)
        return self._background


_twins: WeakValueDictionary[tuple[type, int], Blocking[Any]] = WeakValueDictionary()
"""By the id of what is behind each, which lives as long as its twin does."""


class _Closable(Protocol):
    async def __aenter__(self) -> Any: ...

    async def __aexit__(self, *_: object) -> Any: ...


C_co = TypeVar("C_co", bound=_Closable, covariant=True)


class Resource(Blocking[C_co]):
    """A twin that is opened and closed: use it as a context manager. Closed at exit, if nobody did before."""

    def __init__(self, asynchronous: C_co) -> None:
        super().__init__(asynchronous)
        background().adopt(self)

    @classmethod
    def owning(cls, asynchronous: C_co) -> Self:  # type: ignore[misc] # as `over`
        """The twin of an open object that nobody else closes."""
        twin = cls.over(asynchronous)
        background().adopt(twin)
        return twin

    def __enter__(self) -> Self:
        self.in_background().run(self.asynchronous.__aenter__)
        return self

    def __exit__(self, *_: object) -> None:
        self.in_background().run(self.close_at_exit)

    async def close_at_exit(self) -> None:
        """Let go of everything; run by the loop. Idempotent."""
        await self.asynchronous.__aexit__(None, None, None)


def bare(value: Any) -> Any:
    """The async object behind a twin; anything else as it is."""
    return value.asynchronous if isinstance(value, Blocking) else value


def made_as(
    cls: Callable[P, A],
) -> Callable[[Callable[[B, A], None]], Callable[Concatenate[B, P], None]]:
    """Decorates `__init__(self, asynchronous)` of a twin that is made with the arguments of its async class."""

    def decorate(init: Callable[[B, A], None]) -> Callable[Concatenate[B, P], None]:
        def __init__(self: B, /, *args: P.args, **kwargs: P.kwargs) -> None:  # noqa: N807 - it becomes one
            init(self, _bound(cls, *args, **kwargs)())

        own = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
        given = inspect.signature(cls).parameters.values()
        __init__.__signature__ = inspect.Signature([*own, *given])  # type: ignore[attr-defined]
        __init__.__doc__ = inspect.getdoc(getattr(cls, "__init__"))  # noqa: B009 - mypy knows a callable only
        return __init__

    return decorate


def made_by(
    make: Callable[P, Coroutine[Any, Any, A]],
) -> Callable[[Callable[[type[D], A], D]], Callable[Concatenate[type[D], P], D]]:
    """Decorates a class method that puts a twin before what the coroutine function `make` has made."""

    def decorate(put: Callable[[type[D], A], D]) -> Callable[Concatenate[type[D], P], D]:
        def forward(cls: type[D], /, *args: P.args, **kwargs: P.kwargs) -> D:
            return put(cls, background().run(_bound(make, *args, **kwargs)))

        own = [inspect.Parameter("cls", inspect.Parameter.POSITIONAL_ONLY)]
        signature = inspect.signature(make)
        named = _named_like(make, forward)
        named.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[*own, *signature.parameters.values()]
        )
        return named

    return decorate


def blocking_method(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Blocking[A], P], T]:
    """The same method, blocking."""

    def forward(self: Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.in_background().run(_bound(_own(self, method), *args, **kwargs))

    return _named_like(method, forward)


def blocking_function(twin: Blocking[Any], function: Callable[P, Awaitable[T]]) -> Callable[P, T]:
    """An async function that came from the object behind the twin, blocking."""

    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return await function(*args, **kwargs)

    def forward(*args: P.args, **kwargs: P.kwargs) -> T:
        return twin.in_background().run(_bound(call, *args, **kwargs))

    return _named_like(function, forward)


def plain_method(method: Callable[Concatenate[A, P], T]) -> Callable[Concatenate[Blocking[A], P], T]:
    """The same method, which never waits; run by the loop, so that it may be called from any thread."""

    def forward(self: Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.in_background().call(_bound(_own(self, method), *args, **kwargs))

    return _named_like(method, forward)


def blocking_iterator(
    method: Callable[Concatenate[A, P], AsyncIterator[T]], *, page: int
) -> Callable[Concatenate[Blocking[A], P], Iterator[T]]:
    """The same method as a generator, which fetches `page` items at a time and holds no more than that."""

    def forward(self: Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        home = self.in_background()
        items = _bound(_own(self, method), *args, **kwargs)()
        while got := self.in_background().run(functools.partial(_next_page, items, page)):
            try:
                yield from got
            except BaseException:  # the reader stops: what was not read is not made
                _close(home, items)
                raise

    return _named_like(method, forward)


def blocking_manager(
    method: Callable[Concatenate[A, P], AbstractAsyncContextManager[T]],
) -> Callable[Concatenate[Blocking[A], P], AbstractContextManager[T]]:
    """The same method, which gives a context manager for `with`."""

    def forward(self: Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> AbstractContextManager[T]:
        return self.in_background().hold(_bound(_own(self, method), *args, **kwargs)())

    return _named_like(method, forward)


def _own(twin: Blocking[Any], method: Callable[..., T]) -> Callable[..., T]:
    """The method of the class of what is behind the twin, which may be derived from the one that the twin knows."""
    own: Callable[..., T] = getattr(type(twin.asynchronous), method.__name__)
    return functools.partial(own, twin.asynchronous)


def _bound(function: Callable[..., T], *args: Any, **kwargs: Any) -> Callable[[], T]:
    """The call that is to be made, with async objects in place of their twins."""
    return functools.partial(
        function, *(bare(each) for each in args), **{name: bare(value) for name, value in kwargs.items()}
    )


def _named_like(method: Callable[..., Any], forward: Callable[P, T]) -> Callable[P, T]:
    functools.update_wrapper(forward, method)
    del forward.__wrapped__  # type: ignore[attr-defined] # or inspect would take it for a coroutine function
    signature = inspect.signature(method)
    returned = signature.return_annotation
    if isinstance(returned, str):
        signature = signature.replace(return_annotation=_ASYNC_ITERATOR.sub("Iterator[", returned))
    forward.__signature__ = signature  # type: ignore[attr-defined]
    return forward


async def _next_page(items: AsyncIterator[T], page: int) -> list[T]:
    got: list[T] = []
    async for item in items:
        got.append(item)
        if len(got) == page:
            break
    return got


def _close(home: Background, items: AsyncIterator[Any]) -> None:
    """End the async generator, and wait for that, unless the twin is collected where nobody can wait.

    That is in the loop's own thread, after a fork, and when the process ends.
    """
    if isinstance(items, AsyncGenerator) and home is background() and home.is_alive and not home.is_here:
        home.run(items.aclose)

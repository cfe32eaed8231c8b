"""The short way in, blocking."""

from __future__ import annotations

from typing import Self

from lamina.kernel import Kernel as AsyncKernel
from lamina.sdk import Lamina as AsyncLamina
from lamina.sdk import ThreadHandle as AsyncThreadHandle
from lamina.sync.forwarding import Blocking, Resource, bare, blocking_method, made_by
from lamina.sync.kernel import Kernel

__all__ = ["Lamina", "ThreadHandle"]


class ThreadHandle(Blocking[AsyncThreadHandle]):
    """A `lamina.sdk.ThreadHandle` that blocks; `Lamina.thread` gives it."""

    @property
    def id(self) -> str:
        """The thread's."""
        return self.asynchronous.id

    add_message = blocking_method(AsyncThreadHandle.add_message)
    get_context = blocking_method(AsyncThreadHandle.get_context)


class Lamina(Resource[AsyncLamina]):
    """A `lamina.Lamina` that blocks. Make it with `Lamina.create()`; end it with `close`, or use it in a `with`."""

    def __init__(self, kernel: Kernel | AsyncKernel, *, owner: str) -> None:
        super().__init__(AsyncLamina(bare(kernel), owner=owner))

    @classmethod
    @made_by(AsyncLamina.create)
    def create(cls, asynchronous: AsyncLamina) -> Self:  # noqa: D102 - it has that of its async twin
        return cls.owning(asynchronous)

    @property
    def owner(self) -> str:
        """Whose memories and threads these are, where a call names nobody else."""
        return self.asynchronous.owner

    remember = blocking_method(AsyncLamina.remember)
    recall = blocking_method(AsyncLamina.recall)
    ask = blocking_method(AsyncLamina.ask)
    close = blocking_method(AsyncLamina.close)

    def thread(self, id: str, *, owner: str | None = None) -> ThreadHandle:
        """The thread of this id."""
        return self.part(ThreadHandle, self.asynchronous.thread(id, owner=owner))

    def get_kernel(self) -> Kernel:
        """The kernel underneath."""
        return self.part(Kernel, self.asynchronous.get_kernel())

"""Maintenance of a tenant's data."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from fastapi import APIRouter, Request, status

from lamina.errors import Conflict, InvalidInput, ScopeError, Unsupported
from lamina.ports.clock import utc_now
from lamina.server.caller import Administrator, Caller
from lamina.server.wire.maintenance import (
    BackedUp,
    Check,
    Checked,
    Erased,
    Erasure,
    Maintained,
    Maintenance,
    NewBackup,
    Statistics,
)

__all__ = ["router", "whole_tenant"]

router = APIRouter(prefix="/v1", tags=["maintenance"])


@router.post("/maintenance", summary="Clean up")
async def run_maintenance(caller: Administrator, body: Maintenance) -> Maintained:
    """Purge what has expired, clean up after documents, let packs fade, let plug-in engines maintain themselves."""
    report = asdict(await whole_tenant(caller).kernel.run_maintenance(decay=body.decay))
    return Maintained(failures=report.pop("failures"), report=report)


@router.post("/backup", status_code=status.HTTP_201_CREATED, summary="Copy the whole store")
async def back_up(caller: Administrator, request: Request, body: NewBackup) -> BackedUp:
    """A copy of the database, all tenants' data, in the server's own `backup_folder`; nothing of it is sent.

    It was restored once and compared with the original before this answers.
    """
    kernel = whole_tenant(caller).kernel
    folder: Path | None = request.app.state.settings.backup_folder
    if folder is None:
        raise Unsupported("This server", "backups", "Set server.backup_folder, or use `lamina backup`.")
    name = body.name or f"lamina-{utc_now():%Y%m%dT%H%M%S%f}.db"
    path = folder / name
    if path.exists():
        raise Conflict(f"The backup {name!r}", "is there already", "Give another name.")
    done = await kernel.backup(path)
    return BackedUp(name=name, bytes=done.bytes)


@router.post("/check", summary="Look everything over")
async def check(caller: Administrator, body: Check) -> Checked:
    """Read and compare all that is kept; with `repair`, make anew first what the rows tell.

    Problems are counted by part, since a database of several tenants tells of all of them: `lamina check` names them.
    """
    return Checked.of(await whole_tenant(caller).kernel.check_integrity(repair=body.repair))


@router.post("/erase", summary="Erase a person")
async def erase(caller: Administrator, body: Erasure) -> Erased:
    """Everything of an owner, for good, wherever it is kept; `confirm` says the owner once more.

    The receipt is made by reading anew. Asked again, it goes on where it stopped.
    """
    kernel = whole_tenant(caller).kernel
    if body.confirm != body.owner:
        raise InvalidInput("confirm", "is not the owner", "Say the owner's name once more.")
    return Erased.of(await kernel.erase(body.owner))


@router.get("/stats", summary="What is stored")
async def statistics(caller: Administrator) -> Statistics:
    """Counts over the whole tenant, and the state of the vectors."""
    return Statistics.of(await whole_tenant(caller).kernel.memory_engine.stats())


def whole_tenant(caller: Caller) -> Caller:
    """The caller, if its token is bound to no owner.

    Raises:
        ScopeError: it is.
    """
    if caller.principal.owner is not None:
        raise ScopeError("This reaches beyond one owner, and the token is bound to one.")
    return caller

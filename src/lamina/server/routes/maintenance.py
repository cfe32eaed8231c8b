"""Maintenance of a tenant's data."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter

from lamina.errors import ScopeError
from lamina.server.caller import Administrator, Caller
from lamina.server.wire.maintenance import Maintained, Maintenance, Statistics

__all__ = ["router", "whole_tenant"]

router = APIRouter(prefix="/v1", tags=["maintenance"])


@router.post("/maintenance", summary="Clean up")
async def run_maintenance(caller: Administrator, body: Maintenance) -> Maintained:
    """Purge what has expired, clean up after documents, let packs fade, let plug-in engines maintain themselves."""
    report = asdict(await whole_tenant(caller).kernel.run_maintenance(decay=body.decay))
    return Maintained(failures=report.pop("failures"), report=report)


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

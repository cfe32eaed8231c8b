"""Whether the server lives, and whether it can serve."""

from __future__ import annotations

from fastapi import APIRouter

__all__ = ["router"]

router = APIRouter(tags=["health"])


@router.get("/healthz", summary="Whether the process lives")
async def healthz() -> dict[str, str]:
    """Needs no token, and touches no storage."""
    return {"status": "ok"}

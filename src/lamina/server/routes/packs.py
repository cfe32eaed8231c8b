"""Context Packs as a resource, under the paths that clients of packs know."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response, status

from lamina.domain.pack import Pack, PackStatus, PackType
from lamina.errors import PackNotFound
from lamina.server.numbered_pages import Found, Listed, NumberedPage, Pagination, Single, checked_alias
from lamina.server.pack_callers import PackCaller, PackReader, PackWriter
from lamina.server.preconditions import OptionalPrecondition, set_etag
from lamina.server.routes.segments import SegmentRoute
from lamina.server.wire.packs import (
    Discover,
    NewPack,
    PackChanges,
    PackFound,
    PackName,
    PackShown,
    PackWhole,
    Step,
)
from lamina.server.wire.strict import Limit, Moment, Name, Tag

__all__ = ["router"]

router = APIRouter(prefix="/utils/context-packs", tags=["packs"], route_class=SegmentRoute)


@router.get("", summary="List packs")
async def list_packs(
    caller: PackReader,
    page: NumberedPage,
    *,
    type: PackType | None = None,
    pack_type: Annotated[PackType | None, Query(description="Another name of `type`.")] = None,
    tag: Tag | None = None,
    status: PackStatus = PackStatus.ACTIVE,
    owner: Name | None = None,
) -> Listed[PackShown]:
    """The summary layer of each, by name: the shared ones, and those of the owner."""
    asked: dict[str, Any] = {
        "type": checked_alias("pack_type", pack_type, "type", type),
        "tag": tag,
        "status": status,
        "owner": caller.owner(owner),
    }
    found = await caller.packs.list(**asked, limit=page.limit, offset=page.offset)
    return Listed(data=[PackShown.of(each) for each in found], pagination=page.of(await caller.packs.count(**asked)))


@router.post("", status_code=status.HTTP_201_CREATED, summary="Make a pack")
async def create_pack(caller: PackWriter, response: Response, body: NewPack) -> Single[PackWhole]:
    """With a token that is bound to an owner it is that owner's."""
    owner = caller.owner(body.owner)
    pack = await caller.packs.create(**body.given(), owner=owner)
    response.headers["Location"] = f"/utils/context-packs/{pack.name}"
    return await _whole(caller, response, pack, owner)


@router.post("/discover", summary="Find packs")
async def discover_packs(caller: PackReader, body: Discover) -> Found[PackFound]:
    """Phase one: the packs that the query is about, told from their summaries alone."""
    limit = min(body.limit, caller.max_results)
    asked = body.model_dump(exclude={"owner", "limit"})
    found = await caller.packs.discover(**asked, limit=limit, owner=caller.owner(body.owner))
    return Found[PackFound].best([PackFound.matched(each) for each in found], limit, found.degraded)


@router.get("/{pack_name}", summary="One pack")
async def get_pack(
    caller: PackReader, response: Response, pack_name: PackName, owner: Name | None = None
) -> Single[PackWhole]:
    """Its summary and its metadata layer; nothing of it counts as read. The owner's own pack of the name goes first."""
    whose = caller.owner(owner)
    return await _whole(caller, response, await caller.packs.get(pack_name, owner=whose), whose)


@router.patch("/{pack_name}", summary="Change a pack")
async def change_pack(
    caller: PackWriter,
    precondition: OptionalPrecondition,
    response: Response,
    *,
    pack_name: PackName,
    body: PackChanges,
    owner: Name | None = None,
) -> Single[PackWhole]:
    """The fields that are given, over whatever else was changed meanwhile; with `If-Match`, over that revision only."""
    whose = caller.owner(owner)
    expected = precondition.check((await caller.packs.get(pack_name, owner=whose)).revision)
    with precondition.held():
        pack = await caller.packs.update(pack_name, **body.given(), owner=whose, expected_revision=expected)
    return await _whole(caller, response, pack, whose)


@router.delete("/{pack_name}", status_code=status.HTTP_204_NO_CONTENT, summary="Delete a pack")
async def delete_pack(
    caller: PackWriter, precondition: OptionalPrecondition, pack_name: PackName, owner: Name | None = None
) -> None:
    """With its memories; nobody finds them any more, and the name is free. They are kept, hidden."""
    whose = caller.owner(owner)
    expected = precondition.check((await caller.packs.get(pack_name, owner=whose)).revision)
    with precondition.held():
        gone = await caller.packs.delete(pack_name, owner=whose, expected_revision=expected)
    if not gone:
        raise PackNotFound(pack_name)


@router.post("/{pack_name}/permanent-delete", status_code=status.HTTP_204_NO_CONTENT, summary="Delete a pack for good")
async def delete_pack_for_good(
    caller: PackWriter, precondition: OptionalPrecondition, pack_name: PackName, owner: Name | None = None
) -> None:
    """With its memories, their originals and vectors; so, too, those that were deleted under this name, or id.

    With `If-Match` one that is not deleted yet is meant.
    """
    whose, expected = caller.owner(owner), None
    if not precondition.is_any:
        expected = precondition.check((await caller.packs.get(pack_name, owner=whose)).revision)
    with precondition.held():
        gone = await caller.packs.delete(pack_name, permanent=True, owner=whose, expected_revision=expected)
    if not gone:
        raise PackNotFound(pack_name)


@router.get("/{pack_name}/fading", summary="What fades next")
async def preview_fading(
    caller: PackReader,
    *,
    pack_name: PackName,
    limit: Annotated[Limit, Query()] = 20,
    until: Moment | None = None,
    owner: Name | None = None,
) -> Listed[Step]:
    """The next step of each memory that has one, the first first. Changes nothing, and counts as no access."""
    size = min(limit, caller.max_results)
    steps = await caller.packs.preview(until, limit=size, pack=pack_name, owner=caller.owner(owner))
    return Listed(data=[Step.of(each) for each in steps], pagination=Pagination.of(1, size, len(steps)))


async def _whole(caller: PackCaller, response: Response, pack: Pack, owner: str | None) -> Single[PackWhole]:
    set_etag(response, pack.revision)
    return Single(data=PackWhole.told(pack, await caller.packs.metadata(pack.name, owner=owner)))

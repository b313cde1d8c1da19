"""`/api/feeds/…`: asking for a visit now."""

from typing import Annotated, ClassVar, Literal

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict

from headwater.collect.editing import act_on_source
from headwater.store.sources import request_refresh
from headwater.web.api.auth import needs
from headwater.web.api.problems import problem_responses
from headwater.web.context import InContext

router = APIRouter(prefix="/feeds", tags=["feeds"])

SourceId = Annotated[int, Path(ge=1, le=2**63 - 1, description="The source's number.")]


class Queued(BaseModel):
    """The source is first in line; the collector visits it within a second or as soon as its host allows."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={"example": {"status": "queued", "feed_id": 1}}
    )

    status: Literal["queued"] = "queued"
    feed_id: int


class AllQueued(BaseModel):
    """So many sources are first in line: all that are not switched off."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={"example": {"status": "queued", "queued_count": 218}}
    )

    status: Literal["queued"] = "queued"
    queued_count: int


@router.post(
    "/refresh-all",
    status_code=202,
    dependencies=[needs("refresh")],
    responses=problem_responses(),
    summary="Refresh all sources",
)
async def refresh_all(context: InContext) -> AllQueued:
    """Visit every source now, whatever the plans say."""
    return AllQueued(queued_count=await context.store.write(request_refresh, None, context.clock()))


@router.post(
    "/{feed_id}/refresh",
    status_code=202,
    dependencies=[needs("refresh")],
    responses=problem_responses(404, 409),
    summary="Refresh one source",
)
async def refresh(context: InContext, feed_id: SourceId) -> Queued:
    """Visit one source now, whatever its plan says."""
    await context.store.write(act_on_source, "refresh", feed_id, context.clock())
    return Queued(feed_id=feed_id)

"""`/api/model-usage`: what models were asked, and what it cost."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from headwater.store.pipelines.models import name_owners, read_usage
from headwater.views.models import ModelUsageView, usage_json
from headwater.views.shape import Json
from headwater.web.api.auth import needs
from headwater.web.api.problems import problem_responses
from headwater.web.context import InContext

router = APIRouter(tags=["models"])

DAY = 86_400.0


class ModelUsage(BaseModel):
    usage: list[ModelUsageView] = Field(description="The newest day first.")


@router.get(
    "/model-usage",
    response_model=ModelUsage,
    dependencies=[needs("read")],
    responses=problem_responses(),
    summary="Usage of models",
)
async def usage(
    context: InContext,
    days: Annotated[int, Query(ge=1, le=366, description="The number of days, including today.")] = 30,
) -> Json:
    """What each pipeline and digest asked of each model in a day."""
    found = await context.store.read(read_usage, context.clock() - (days - 1) * DAY)
    names = await context.store.read(name_owners, found)
    return {"usage": [usage_json(each, owner_name=names[each.owner]) for each in found]}

"""`/api/settings`, `/api/types…`: what is in force, and the intervals of types."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from headwater.collect.context import read_intervals
from headwater.collectors.types import SourceType, find_type, source_types
from headwater.sources.intervals import (
    LONGEST_INTERVAL_MINUTES,
    SHORTEST_INTERVAL_MINUTES,
    set_type_interval,
)
from headwater.store.core.settings import interval_settings
from headwater.store.core.versions import version_of_interval
from headwater.views.settings import SettingView, settings_json
from headwater.views.shape import Json
from headwater.views.types import TypeView, type_json
from headwater.web.api.auth import needs
from headwater.web.api.problems import problem_responses
from headwater.web.context import Context, InContext
from headwater.web.etags import (
    NOT_MODIFIED,
    IfMatch,
    IfNoneMatch,
    answer_tagged,
    expected_version,
)

router = APIRouter(tags=["settings"])

TypeName = Annotated[str, Path(max_length=100, description="The type, by either of its names.")]


class SettingsInForce(BaseModel):
    settings: list[SettingView]


class Types(BaseModel):
    types: list[TypeView]


class Interval(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"minutes": 120}}
    )

    minutes: float = Field(ge=SHORTEST_INTERVAL_MINUTES, le=LONGEST_INTERVAL_MINUTES, allow_inf_nan=False)


@router.get(
    "/settings",
    response_model=SettingsInForce,
    dependencies=[needs("admin")],
    responses=problem_responses(),
    summary="Settings",
)
async def settings(context: InContext) -> Json:
    """Every setting as this process has it, and where it comes from. Change it there."""
    return {"settings": settings_json(context.settings)}


@router.get(
    "/types",
    response_model=Types,
    dependencies=[needs("read")],
    responses=problem_responses(),
    summary="Types of sources",
)
async def types(context: InContext) -> Json:
    """The types that sources can have, with the intervals in force."""
    return {"types": await _shown(context, source_types())}


@router.get(
    "/types/{name}",
    response_model=TypeView,
    dependencies=[needs("read")],
    responses={**problem_responses(400), **NOT_MODIFIED},
    summary="One type",
)
async def one_type(
    request: Request, context: InContext, name: TypeName, if_none_match: IfNoneMatch = None
) -> Response:
    """A type with the interval in force."""
    return await _answer(request, context, name)


@router.put(
    "/types/{name}/interval",
    response_model=TypeView,
    dependencies=[needs("admin")],
    responses=problem_responses(400, 412),
    summary="Set a type's interval",
)
async def set_interval(
    request: Request, context: InContext, name: TypeName, interval: Interval, if_match: IfMatch = None
) -> Response:
    """Set the minutes between visits for a type. It takes effect at once, for every worker."""
    await context.store.write(
        set_type_interval, name, interval.minutes, context.clock(), expected_version(if_match)
    )
    return await _answer(request, context, name)


@router.delete(
    "/types/{name}/interval",
    response_model=TypeView,
    dependencies=[needs("admin")],
    responses=problem_responses(400, 412),
    summary="Take back a type's interval",
)
async def unset_interval(
    request: Request, context: InContext, name: TypeName, if_match: IfMatch = None
) -> Response:
    """Let the environment's interval for the type be in force again, or its default. Again is not an error."""
    await context.store.write(set_type_interval, name, None, context.clock(), expected_version(if_match))
    return await _answer(request, context, name)


async def _answer(request: Request, context: Context, name: str) -> Response:
    (shown,) = await _shown(context, [find_type(name)])
    return answer_tagged(request, shown, version_of_interval(shown["set_minutes"]))


async def _shown(context: Context, wanted: Sequence[SourceType]) -> list[Json]:
    in_force = await read_intervals(context.store, context.settings)
    stored = await context.store.read(interval_settings)
    return [type_json(kind, in_force, stored) for kind in wanted]

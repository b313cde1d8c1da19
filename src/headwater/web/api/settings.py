"""`/api/settings`, `/api/types…`: what is in force, and the intervals of types."""

from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from headwater.collect.intervals import (
    LONGEST_INTERVAL_MINUTES,
    SHORTEST_INTERVAL_MINUTES,
    set_type_interval,
)
from headwater.collect.surroundings import read_intervals
from headwater.collectors.types import SourceType, find_type, source_types
from headwater.config import shown_value
from headwater.settings import SETTINGS
from headwater.store.settings import interval_settings
from headwater.web.api.auth import needs
from headwater.web.api.problems import problem_responses
from headwater.web.context import Context, InContext

router = APIRouter(tags=["settings"])

TypeName = Annotated[str, Path(max_length=100, description="The type, by either of its names.")]


class SettingEntry(BaseModel):
    """One setting as it is in force."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={
            "example": {
                "name": "port",
                "value": 8626,
                "origin": "default",
                "environment": ["HEADWATER_PORT"],
                "help": "The port of the dashboard and the API.",
            }
        }
    )

    name: str
    value: Any = Field(description="Secrets are starred out.")
    origin: str = Field(description="Where it comes from.")
    environment: list[str] = Field(description="Its names in the environment.")
    help: str


class SettingsInForce(BaseModel):
    settings: list[SettingEntry]


class TypeEntry(BaseModel):
    """A type of source."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={
            "example": {
                "name": "rss.feed",
                "alias": "rss",
                "collected": True,
                "default_minutes": 240,
                "interval_minutes": 120,
                "set_minutes": 120,
            }
        }
    )

    name: str
    alias: str | None = Field(description="Its one-word name.")
    collected: bool = Field(
        description="False: sources of this type can be stored, and visits to them are skipped."
    )
    default_minutes: float
    interval_minutes: float = Field(description="The minutes between visits that are in force.")
    set_minutes: float | None = Field(description="What was set for all workers; null: nothing.")


class Types(BaseModel):
    types: list[TypeEntry]


class Interval(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"minutes": 120}}
    )

    minutes: float = Field(ge=SHORTEST_INTERVAL_MINUTES, le=LONGEST_INTERVAL_MINUTES, allow_inf_nan=False)


@router.get("/settings", dependencies=[needs("admin")], responses=problem_responses(), summary="Settings")
async def settings(context: InContext) -> SettingsInForce:
    """Every setting as this process has it, and where it comes from. They are changed where that is."""
    in_force = context.settings
    return SettingsInForce(
        settings=[
            SettingEntry(
                name=setting.name,
                value=shown_value(setting, getattr(in_force, setting.name)),
                origin=str(in_force.origins[setting.name]),
                environment=list(setting.env),
                help=setting.help,
            )
            for setting in SETTINGS
        ]
    )


@router.get("/types", dependencies=[needs("read")], responses=problem_responses(), summary="Types of sources")
async def types(context: InContext) -> Types:
    """The types that sources can have, with the intervals in force."""
    return Types(types=await _entries(context, source_types()))


@router.get(
    "/types/{name}", dependencies=[needs("read")], responses=problem_responses(400), summary="One type"
)
async def one_type(context: InContext, name: TypeName) -> TypeEntry:
    """A type with the interval in force."""
    return (await _entries(context, [find_type(name)]))[0]


@router.put(
    "/types/{name}/interval",
    dependencies=[needs("admin")],
    responses=problem_responses(400),
    summary="Set a type's interval",
)
async def set_interval(context: InContext, name: TypeName, interval: Interval) -> TypeEntry:
    """Set the minutes between visits for a type. It takes effect at once, for every worker."""
    await context.store.write(set_type_interval, name, interval.minutes, context.clock())
    return (await _entries(context, [find_type(name)]))[0]


@router.delete(
    "/types/{name}/interval",
    dependencies=[needs("admin")],
    responses=problem_responses(400),
    summary="Take back a type's interval",
)
async def unset_interval(context: InContext, name: TypeName) -> TypeEntry:
    """Let the environment's interval for the type be in force again, or its default. Again is no error."""
    await context.store.write(set_type_interval, name, None, context.clock())
    return (await _entries(context, [find_type(name)]))[0]


async def _entries(context: Context, wanted: list[SourceType] | tuple[SourceType, ...]) -> list[TypeEntry]:
    in_force = await read_intervals(context.store, context.settings)
    set_here = await context.store.read(interval_settings)
    return [
        TypeEntry(
            name=kind.name,
            alias=kind.alias,
            collected=kind.collector is not None,
            default_minutes=kind.interval_minutes,
            interval_minutes=in_force[kind.name],
            set_minutes=next(
                (set_here[name] for name in (kind.name, kind.alias or "") if name in set_here), None
            ),
        )
        for kind in wanted
    ]

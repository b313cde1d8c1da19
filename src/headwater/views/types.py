"""A type of source, with the interval in force."""

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from headwater.collectors.types import SourceType, collector_of, config_model_of, find_type
from headwater.views.shape import Json, with_example


class TypeView(BaseModel):
    """A type of source."""

    model_config: ClassVar[ConfigDict] = with_example(
        lambda: {**type_json(find_type("rss"), {"rss.feed": 120.0}, {"rss.feed": 120.0}), "config_schema": {}}
    )

    name: str
    alias: str | None = Field(description="Its one-word name.")
    collected: bool = Field(
        description="False: sources of this type can be stored, and visits to them are skipped."
    )
    default_minutes: float
    interval_minutes: float = Field(description="The minutes between visits that are in force.")
    set_minutes: float | None = Field(
        description="The minutes that were set for all workers; null: none were."
    )
    config_schema: dict[str, Any] = Field(description="What its config takes, as JSON Schema.")


@cache
def _schema(model: type[BaseModel]) -> Json:
    return model.model_json_schema()


def type_json(kind: SourceType, in_force: Mapping[str, float], stored: Mapping[str, float]) -> Json:
    """`in_force`: minutes between visits by type; `stored`: those that were set for all workers, by either name."""
    names = (kind.name, kind.alias or "")
    return {
        "name": kind.name,
        "alias": kind.alias,
        "collected": collector_of(kind.name) is not None,
        "default_minutes": kind.interval_minutes,
        "interval_minutes": in_force[kind.name],
        "set_minutes": next((stored[name] for name in names if name in stored), None),
        "config_schema": _schema(config_model_of(kind.name)),
    }

"""A setting as it is in force, and where its value comes from."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from headwater.config import INTERVAL_NAME, INTERVAL_VARIABLE, Settings, shown_value
from headwater.settings import SETTINGS, Setting
from headwater.views.shape import Json


class SettingView(BaseModel):
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
    value: Any = Field(description="Secrets are shown as ***.")
    origin: str = Field(description="Where it comes from.")
    environment: list[str] = Field(description="Its names in the environment.")
    help: str


def settings_json(settings: Settings) -> list[Json]:
    """Every setting, and the intervals that were set for types."""
    return [
        *(_setting_json(setting, settings) for setting in SETTINGS),
        *(_interval_json(name, settings) for name in _intervals_in_force(settings)),
    ]


def _setting_json(setting: Setting, settings: Settings) -> Json:
    return {
        "name": setting.name,
        "value": shown_value(setting, getattr(settings, setting.name)),
        "origin": str(settings.origins[setting.name]),
        "environment": list(setting.env),
        "help": setting.help,
    }


def _interval_json(type_name: str, settings: Settings) -> Json:
    return {
        "name": INTERVAL_NAME + type_name,
        "value": settings.fetch_intervals[type_name],
        "origin": str(settings.origins[INTERVAL_NAME + type_name]),
        "environment": [INTERVAL_VARIABLE + type_name.upper().replace(".", "_")],
        "help": "Minutes between visits to sources of this type.",
    }


def _intervals_in_force(settings: Settings) -> list[str]:
    """Of the names that mean one type, only the last: the others are overruled."""
    from headwater.collectors.types import find_type

    return list({find_type(spelling).name: spelling for spelling in settings.fetch_intervals}.values())

"""`headwater config`: the settings in force."""

from collections.abc import Mapping

import typer

from headwater.cli.output import Json, print_json, print_table
from headwater.cli.session import Session
from headwater.config import INTERVAL_NAME, INTERVAL_VARIABLE, shown_value
from headwater.language import translate as t
from headwater.settings import SETTINGS
from headwater.wording import NOTHING


def config(context: typer.Context, json: Json = False) -> None:
    session: Session = context.obj
    settings = session.settings
    rows = [
        {
            "name": setting.name,
            "value": shown_value(setting, getattr(settings, setting.name)),
            "origin": settings.origins[setting.name],
            "environment": setting.env[0],
            "help": setting.help,
        }
        for setting in SETTINGS
    ]
    rows += [
        {
            "name": INTERVAL_NAME + type_name,
            "value": minutes,
            "origin": settings.origins[INTERVAL_NAME + type_name],
            "environment": INTERVAL_VARIABLE + type_name.upper().replace(".", "_"),
            "help": "Minutes between visits to sources of this type.",
        }
        for type_name, minutes in _in_force(settings.fetch_intervals).items()
    ]
    if json:
        print_json(rows)
        return
    print_table(
        (t("Setting"), t("Value"), t("From"), t("Environment"), t("Meaning")),
        (
            (
                row["name"],
                NOTHING if row["value"] in (None, []) else row["value"],
                t(str(row["origin"])),
                row["environment"],
                t(str(row["help"])),
            )
            for row in rows
        ),
        empty="",
    )


def _in_force(intervals: Mapping[str, float]) -> dict[str, float]:
    """Of the names that mean one type, only the last: the others are overruled."""
    from headwater.collectors.types import find_type

    last = {find_type(spelling).name: spelling for spelling in intervals}
    return {spelling: intervals[spelling] for spelling in last.values()}

"""`headwater config`: the settings in force."""

import typer

from headwater.cli.output import Json, print_json, print_table
from headwater.cli.session import Session
from headwater.config import SETTINGS, shown_value
from headwater.language import translate as t


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
            "name": f"fetch_interval.{type_name}",
            "value": minutes,
            "origin": settings.origins[f"fetch_interval.{type_name}"],
            "environment": f"FETCH_INTERVAL_{type_name.upper().replace('.', '_')}",
            "help": "Minutes between visits to sources of this type.",
        }
        for type_name, minutes in settings.fetch_intervals.items()
    ]
    if json:
        print_json(rows)
        return
    print_table(
        (t("Setting"), t("Value"), t("From"), t("Environment"), t("Meaning")),
        (
            (
                row["name"],
                "-" if row["value"] in (None, []) else row["value"],
                t(str(row["origin"])),
                row["environment"],
                t(str(row["help"])),
            )
            for row in rows
        ),
        empty="",
    )

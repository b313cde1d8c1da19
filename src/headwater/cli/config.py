"""`headwater config`: the settings in force."""

import typer

from headwater.cli.output import Json, print_json, print_table
from headwater.cli.session import Session
from headwater.config import tell_value
from headwater.language import translate as t


def config(context: typer.Context, json: Json = False) -> None:
    from headwater.views.settings import settings_json

    session: Session = context.obj
    rows = settings_json(session.settings)
    if json:
        print_json(rows)
        return
    print_table(
        (t("Setting"), t("Value"), t("From"), t("Environment"), t("Meaning")),
        (
            (
                row["name"],
                tell_value(row["value"]),
                t(str(row["origin"])),
                row["environment"][0],
                t(str(row["help"])),
            )
            for row in rows
        ),
        empty="",
    )

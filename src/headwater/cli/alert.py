"""`headwater alert …`: what needs a person, and who is told."""

import time
from typing import Annotated

import typer

from headwater.cli.output import Json, from_now, print_json, print_table
from headwater.cli.session import Session
from headwater.language import translate as t
from headwater.wording import NOTHING

app = typer.Typer(no_args_is_help=True, help=t("Send a message when something needs your attention."))


@app.command("list", help=t("List what needs your attention now."))
def list_(
    context: typer.Context,
    all_alerts: Annotated[bool, typer.Option("--all", help=t("Include those that are over."))] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help=t("How many, newest first."))] = 50,
    json: Json = False,
) -> None:
    from headwater.publish.alerts import tell_problem
    from headwater.store.publishing.alerts import list_alerts, open_alerts
    from headwater.views.alerts import alert_json

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        found = list_alerts(connection, limit=limit) if all_alerts else open_alerts(connection)[::-1][:limit]
    if json:
        print_json([alert_json(alert, tell_problem(alert)) for alert in found])
        return
    print_table(
        (t("Since"), t("Kind"), t("Problem"), t("Over")),
        (
            (
                from_now(alert.since_at),
                alert.kind,
                tell_problem(alert),
                NOTHING if alert.ended_at is None else from_now(alert.ended_at),
            )
            for alert in found
        ),
        empty=t("Nothing needs your attention."),
    )


@app.command(help=t("Set which problems are reported to which targets; without options, show it."))
def rules(
    context: typer.Context,
    to: Annotated[
        list[str] | None,
        typer.Option("--to", metavar="TARGET", help=t("Send alerts to this target; may be repeated.")),
    ] = None,
    to_none: Annotated[bool, typer.Option("--to-none", help=t("Send no alerts."))] = False,
    off: Annotated[
        list[str] | None,
        typer.Option(
            "--off", metavar="KIND", help=t("Do not check for this kind of problem; may be repeated.")
        ),
    ] = None,
    all_kinds: Annotated[
        bool, typer.Option("--all-kinds", help=t("Check for every kind of problem."))
    ] = False,
    failing_days: Annotated[
        float | None, typer.Option(help=t("The days a source may fail before an alert is sent."))
    ] = None,
    every_minutes: Annotated[
        float | None, typer.Option(help=t("At most one message in so many minutes."))
    ] = None,
    quiet: Annotated[
        str | None,
        typer.Option(metavar="FROM-UNTIL", help=t("When no message is sent, as 22:00-07:00; empty: never.")),
    ] = None,
    zone: Annotated[
        str | None, typer.Option(help=t("The time zone of the quiet hours, as Europe/Berlin."))
    ] = None,
    json: Json = False,
) -> None:
    from headwater.publish.alerts import changed_rules
    from headwater.store.publishing.alerts import get_rules, set_rules
    from headwater.views.alerts import alert_rules_json

    session: Session = context.obj
    begin, _, end = (None, None, None) if quiet is None else quiet.partition("-")
    with session.open_store() as store, store.writing() as connection:
        before = get_rules(connection)
        wanted = changed_rules(
            before,
            targets=() if to_none else tuple(to) if to else None,
            off=() if all_kinds else tuple(off) if off else None,
            failing_days=failing_days,
            every_minutes=every_minutes,
            quiet_from=begin,
            quiet_until=end,
            zone=zone,
        )
        known = before if wanted == before else set_rules(connection, wanted, time.time())
    shown = alert_rules_json(known)
    if json:
        print_json(shown)
        return
    print_table(
        (t("Rule"), t("Value")),
        ((name, ", ".join(value) if isinstance(value, list) else value) for name, value in shown.items()),
        empty=NOTHING,
    )

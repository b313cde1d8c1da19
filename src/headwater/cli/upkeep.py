"""`headwater upkeep`: what is done every hour, now."""

import typer

from headwater.cli.loop import run
from headwater.cli.output import Json, print_json, say
from headwater.cli.session import Session
from headwater.errors import ConflictError
from headwater.language import translate as t


def upkeep(context: typer.Context, json: Json = False) -> None:
    from headwater.collect.upkeep import Upkeep
    from headwater.store.core.clock import measured_clock

    session: Session = context.obj
    with session.open_store() as store:
        keeper = Upkeep(store, session.settings, measured_clock(store), lambda: False)
        done = run(keeper.run_if_due(at_once=True))
    if done is None:
        raise ConflictError("a collector is running the upkeep right now; try again in a few minutes")
    if json:
        print_json({"items_deleted": done.items, "visit_records_deleted": done.records})
    else:
        say(
            t("deleted {items} {items:item|items} and {records} {records:visit record|visit records}").format(
                items=done.items, records=done.records
            )
        )

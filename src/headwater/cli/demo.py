"""`headwater demo`: Headwater at work, without the internet."""

import logging
from typing import Annotated

import typer

from headwater.cli.loop import run
from headwater.cli.output import say
from headwater.cli.session import Session
from headwater.language import translate as t


def demo(
    context: typer.Context,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help=t("The port to listen on, instead of the setting."))
    ] = None,
    weeks: Annotated[
        int, typer.Option(min=1, max=8, help=t("How many weeks of collecting are replayed first."))
    ] = 3,
) -> None:
    from headwater.cli.collect import stopping_on_signals
    from headwater.demo.run import run_demo

    session: Session = context.obj
    if port is not None:
        session.assignments.append(f"port={port}")
    session.log_to_terminal(is_service=True)
    # What the collector does is on the dashboard; here it would only hide the address.
    for name in ("headwater.visits", "headwater.collect.visit"):
        logging.getLogger(name).setLevel(logging.WARNING)

    def on_ready(address: str, hook: str) -> None:
        say(t("The replay is done. See what was collected at {address}").format(address=address))
        say(t("A webhook to try: {address} shows what it was sent.").format(address=hook))
        say(t("Ctrl-C ends the demo and removes what it stored."))

    say(
        t(
            "{weeks} {weeks:week|weeks} of collecting {weeks:is|are} replayed; this takes some seconds."
        ).format(weeks=weeks)
    )
    finished = run(
        run_demo(session.settings, stopping_on_signals=stopping_on_signals, on_ready=on_ready, weeks=weeks)
    )
    if not finished:
        raise typer.Exit(1)

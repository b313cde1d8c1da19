"""`headwater demo`: Headwater at work, without the internet."""

import logging

import typer

from headwater.cli.loop import run
from headwater.cli.output import say
from headwater.cli.session import Session
from headwater.language import translate as t


def demo(context: typer.Context) -> None:
    from headwater.cli.collect import stopping_on_signals
    from headwater.demo.run import run_demo

    session: Session = context.obj
    session.log_to_terminal()
    # What the collector does is on the dashboard; here it would only hide the address.
    logging.getLogger("headwater.visits").setLevel(logging.WARNING)

    def on_ready(address: str, hook: str) -> None:
        say(t("A dozen sources are being collected. See them at {address}").format(address=address))
        say(t("A webhook to try: {address} shows what it was sent.").format(address=hook))
        say(t("Ctrl-C ends the demo and removes what it stored."))

    finished = run(run_demo(session.settings, stopping_on_signals=stopping_on_signals, on_ready=on_ready))
    if not finished:
        raise typer.Exit(1)

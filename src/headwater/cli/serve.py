"""`headwater serve`: collector and dashboard in one process."""

import typer

from headwater.cli.loop import run
from headwater.cli.output import say
from headwater.cli.session import Session
from headwater.language import translate as t


def serve(context: typer.Context) -> None:
    from headwater.cli.collect import stopping_on_signals
    from headwater.web.server import serve as serve_all

    session: Session = context.obj
    with session.open_store(waiting=True) as store:
        finished = run(
            serve_all(
                store,
                session.settings,
                stopping_on_signals=stopping_on_signals,
                on_ready=lambda address: say(t("The dashboard is at {address}").format(address=address)),
                on_first_key=_show_first_key,
            )
        )
    if not finished:
        raise typer.Exit(1)


def _show_first_key(secret: str) -> None:
    say(t("The API's first key, for everything; keep it, it is not shown again: {key}").format(key=secret))

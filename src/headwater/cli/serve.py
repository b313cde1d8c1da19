"""`headwater serve`: the dashboard, and collectors beside it."""

import threading
from typing import Annotated

import typer

from headwater.cli.loop import run
from headwater.cli.output import say
from headwater.cli.session import Session
from headwater.language import translate as t


def serve(
    context: typer.Context,
    host: Annotated[
        str | None, typer.Option(help=t("The address to listen on, instead of the setting."))
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help=t("The port to listen on, instead of the setting."))
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=0, max=64, help=t("How many processes collect, instead of the setting."))
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help=t("Open the dashboard in a browser."))] = False,
) -> None:
    from headwater.cli.collect import stopping_on_signals
    from headwater.cli.processes import CollectorProcesses
    from headwater.web.server import serve as serve_all

    session: Session = context.obj
    for name, value in (("host", host), ("port", port), ("processes", processes)):
        if value is not None:
            session.assignments.append(f"{name}={value}")

    def tell(address: str) -> None:
        say(t("The dashboard is at {address}").format(address=address))
        if open_:
            # In a thread: a browser for the terminal would hold up the server.
            threading.Thread(target=typer.launch, args=(address,), daemon=True).start()

    with session.open_store(waiting=True) as store:
        settings = session.settings

        async def work() -> bool:
            return await serve_all(
                store,
                settings,
                stopping_on_signals=stopping_on_signals,
                on_ready=tell,
                on_sign_in_link=_show_link,
                collecting=CollectorProcesses(settings, settings.processes) if settings.processes else None,
            )

        finished = run(work())
    if not finished:
        raise typer.Exit(1)


def _show_link(address: str) -> None:
    say(
        t("No key or password exists yet. This link signs you in once, within an hour: {address}").format(
            address=address
        )
    )
    say(t("For another link: headwater sign-in-link"))

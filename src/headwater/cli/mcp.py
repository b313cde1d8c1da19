"""`headwater mcp`: a server for agents."""

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.loop import run
from headwater.cli.output import say
from headwater.cli.session import Session
from headwater.errors import InputError
from headwater.language import translate as t

if TYPE_CHECKING:
    from starlette.types import ASGIApp

KEY_VARIABLE = "MCP_API_KEY"


def mcp(
    context: typer.Context,
    http: Annotated[
        bool, typer.Option("--http", help=t("Serve over HTTP; each request brings its own key."))
    ] = False,
    port: Annotated[
        int, typer.Option(min=1, max=65_535, help=t("The port to listen on, with --http."))
    ] = 8627,
) -> None:
    session: Session = context.obj
    secret = os.environ.get(KEY_VARIABLE)
    if not http and not secret:
        raise InputError("put an API key into the environment variable {name}", name=KEY_VARIABLE)
    try:
        from headwater.mcp.server import make_app, make_server
    except ModuleNotFoundError as error:
        if error.name != "mcp":
            raise
        raise InputError("this needs the extra mcp: pip install headwater[mcp]") from None
    with session.open_store(waiting=True) as store:
        if http:
            host = session.settings.host
            run(_serve(make_app(store, session.settings, host), host, port))
        else:
            asyncio.run(make_server(store, session.settings, secret).run_stdio_async())


async def _serve(app: "ASGIApp", host: str, port: int) -> None:
    """Answer requests until a signal."""
    from headwater.cli.collect import stopping_on_signals
    from headwater.web.server import address_of, listen, serve_app

    stopped = asyncio.Event()
    with contextlib.closing(listen(host, port)) as listener, stopping_on_signals(stopped.set):
        say(t("The server for agents is at {address}").format(address=address_of(listener) + "mcp"))
        await serve_app(app, listener, stopped, lifespan="on")

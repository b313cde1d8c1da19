"""`headwater mcp`: a server for agents."""

import asyncio
import os
from typing import Annotated

import typer

from headwater.cli.session import Session
from headwater.errors import InputError
from headwater.language import translate as t

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
        from headwater.mcp.server import make_server
    except ModuleNotFoundError as error:
        if error.name != "mcp":
            raise
        raise InputError("this needs the extra mcp: pip install headwater[mcp]") from None
    with session.open_store(waiting=True) as store:
        server = make_server(store, session.settings, None if http else secret)
        if http:
            host = session.settings.host
            asyncio.run(
                server.run_streamable_http_async(
                    host=host, port=port, stateless_http=True, json_response=True
                )
            )
        else:
            asyncio.run(server.run_stdio_async())

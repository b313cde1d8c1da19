"""Running the web application and the collector side by side on one event loop."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator

import uvicorn
from fastapi import FastAPI

from headwater.collect.engine import Engine
from headwater.collect.surroundings import make_fetcher
from headwater.config import Settings
from headwater.errors import InputError
from headwater.pipeline.beside import WorkerBeside
from headwater.store.database import Store
from headwater.web.app import create_app


class _Server(uvicorn.Server):
    """Uvicorn without its own idea of signals: the command line decides when to stop."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, or one clear line why not."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with contextlib.ExitStack() as undo:
            listener = undo.enter_context(socket.socket(family, socket.SOCK_STREAM))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
            listener.listen(128)  # from here on callers wait in line, even before anybody answers
            undo.pop_all()
            return listener
    except OSError as error:  # the port is taken, or this machine has no such address
        raise InputError(
            "cannot listen on {host}:{port}: {problem}; choose another port with HEADWATER_PORT",
            host=f"[{host}]" if ":" in host else host,
            port=port,
            problem=error.strerror or error,
        ) from None


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


async def serve_app(app: FastAPI, listener: socket.socket, stopped: asyncio.Event) -> None:
    """Answer requests until `stopped`."""
    server = _Server(
        uvicorn.Config(
            app,
            log_config=None,  # its lines go where all others go, in the same form
            log_level="warning",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=5,
        )
    )
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    stopping = asyncio.create_task(stopped.wait())
    await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    stopping.cancel()
    await serving


async def serve(
    store: Store,
    settings: Settings,
    *,
    stopping_on_signals: Callable[[Callable[[], None]], contextlib.AbstractContextManager[None]],
    on_ready: Callable[[str], None],
) -> bool:
    """Collect, work on pipelines and show until a signal. Answers False when something had to be cut short."""
    stopped = asyncio.Event()
    with contextlib.closing(listen(settings.host, settings.port)) as listener:
        async with Engine(store, settings) as engine:
            beside = WorkerBeside(store, settings, make_fetcher)

            def stop() -> None:
                engine.stop()
                beside.stop()
                stopped.set()

            with stopping_on_signals(stop):
                async with beside:
                    app = create_app(store, host=settings.host)
                    serving = asyncio.create_task(serve_app(app, listener, stopped))
                    collecting = asyncio.create_task(engine.run())
                    on_ready(address_of(listener))
                    await asyncio.wait((serving, collecting), return_when=asyncio.FIRST_COMPLETED)
                    stop()
                    # Both end before either's error is raised: visits under way are settled or given back.
                    await asyncio.wait((serving, collecting))
                    finished = collecting.result()
                    serving.result()
                return finished and beside.finished

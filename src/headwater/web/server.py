"""Running the web application and the collector side by side on one event loop."""

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable, Iterator

import uvicorn
from fastapi import FastAPI

from headwater.collect.engine import Engine
from headwater.collect.surroundings import make_fetcher
from headwater.config import Settings
from headwater.errors import InputError
from headwater.pipeline.beside import WorkerBeside
from headwater.store.database import Store
from headwater.store.keys import add_first_key, has_key
from headwater.web.app import create_app
from headwater.web.hosts import is_loopback
from headwater.web.indexing import Indexer

FIRST_KEY_NAME = "first"


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


async def _refuse_open_door(store: Store, host: str) -> None:
    """Beyond this machine, only holders of a key are let in: without any key there is nobody to serve."""
    if not is_loopback(host) and not await store.read(has_key):
        raise InputError(
            "listening on {host} lets others in, and there is no API key yet to tell them apart; "
            "make one first: headwater key add NAME --scope admin",
            host=host,
        )


async def _make_first_key(store: Store, tell: Callable[[str], None]) -> None:
    secret = await store.write(add_first_key, name=FIRST_KEY_NAME, now=time.time())
    if secret is not None:
        tell(secret)


async def serve(
    store: Store,
    settings: Settings,
    *,
    stopping_on_signals: Callable[[Callable[[], None]], contextlib.AbstractContextManager[None]],
    on_ready: Callable[[str], None],
    on_first_key: Callable[[str], None] | None = None,
) -> bool:
    """Collect, work on pipelines and show until a signal. Answers False when something had to be cut short.

    With `on_first_key`, an API key is made if there never was one, and told this once.
    """
    stopped = asyncio.Event()
    await _refuse_open_door(store, settings.host)
    with contextlib.closing(listen(settings.host, settings.port)) as listener:
        async with Engine(store, settings) as engine:
            beside = WorkerBeside(store, settings, make_fetcher)

            def stop() -> None:
                engine.stop()
                beside.stop()
                stopped.set()

            with stopping_on_signals(stop):
                async with beside:
                    app = create_app(
                        store, settings, clock=engine.clock, is_collecting=lambda: not collecting.done()
                    )
                    serving = asyncio.create_task(serve_app(app, listener, stopped))
                    collecting = asyncio.create_task(engine.run())
                    indexing = asyncio.create_task(Indexer(store, engine.clock).run())
                    on_ready(address_of(listener))
                    if on_first_key is not None:
                        await _make_first_key(store, on_first_key)
                    await asyncio.wait((serving, collecting), return_when=asyncio.FIRST_COMPLETED)
                    stop()
                    indexing.cancel()
                    # Both end before either's error is raised: visits under way are settled or given back.
                    await asyncio.wait((serving, collecting, indexing))
                    finished = collecting.result()
                    serving.result()
                return finished and beside.finished

"""Running the web application, and something that collects beside it."""

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Literal

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from headwater.config import Settings
from headwater.errors import InputError, StoreError
from headwater.fetch.client import make_fetcher
from headwater.newsletters.idle import MailWatcher
from headwater.newsletters.receiver import Receiver
from headwater.store.core.clock import MEASURE_EVERY_SECONDS, DatabaseClock
from headwater.store.core.database import Store
from headwater.store.people.sessions import can_anyone_sign_in, end_sessions_of_other_passwords, make_link
from headwater.store.people.users import only_user
from headwater.web.app import create_app
from headwater.web.changes import Changes
from headwater.web.collecting import Collecting, CollectingHere
from headwater.web.connections import BoundedProtocol
from headwater.web.hosts import is_open, link_address
from headwater.web.indexing import Indexer
from headwater.web.pages.visitor import Sessions

GRACE_SECONDS = 5  # for requests under way when the process is told to end


class _CutOff(logging.Filter):
    """Logs a request that was cut off at the end of the process as one line, without a traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError):
            record.msg, record.args, record.exc_info = "a request was cut off: the process ends", (), None
        return True


_CUT_OFF = _CutOff()


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
            listener.listen(128)  # from here on callers wait in line, even before the first answer
            undo.pop_all()
            return listener
    except OSError as error:  # the port is taken, or this machine has no such address
        raise InputError(
            "cannot listen on {host}:{port}: {problem}; choose another port with --port or HEADWATER_PORT",
            host=f"[{host}]" if ":" in host else host,
            port=port,
            problem=error.strerror or error,
        ) from None


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


async def serve_app(
    app: ASGIApp, listener: socket.socket, stopped: asyncio.Event, *, lifespan: Literal["on", "off"] = "off"
) -> None:
    """Answer requests until `stopped`."""
    server = _Server(
        uvicorn.Config(
            app,
            http=BoundedProtocol,
            ws="none",
            log_config=None,  # its lines go where all others go, in the same form
            log_level="warning",
            access_log=False,
            proxy_headers=False,  # web.hosts believes the proxies that the settings name, and no others
            lifespan=lifespan,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )
    logging.getLogger("uvicorn.error").addFilter(_CUT_OFF)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    stopping = asyncio.create_task(stopped.wait())
    await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    changes: Changes | None = getattr(getattr(app, "state", None), "changes", None)
    if changes is not None:  # else its streams would be waited for
        await changes.close()
    server.should_exit = True
    stopping.cancel()
    await serving


async def _tell_way_in(store: Store, settings: Settings, port: int, tell: Callable[[str], None]) -> None:
    """Make a sign-in link where everyone has to sign in and no one can yet."""
    now = time.time()
    if is_open(settings) and await store.read(only_user) is not None:
        return
    if settings.password is not None or await store.read(can_anyone_sign_in, now):
        return
    tell(link_address(settings, port, await store.write(make_link, now)))


async def _end_old_sessions(store: Store, app: FastAPI) -> None:
    """End the sessions that a former password had let in, so that they are not listed either."""
    sessions: Sessions = app.state.sessions
    await store.write(end_sessions_of_other_passwords, await sessions.password_mark())


async def _keep_time(store: Store, clock: DatabaseClock) -> None:
    """Set the clock by the database's now and then."""
    while True:
        await asyncio.sleep(MEASURE_EVERY_SECONDS)
        with contextlib.suppress(StoreError):
            await store.read(clock.measure)


@contextlib.asynccontextmanager
async def _taking_letters(store: Store, settings: Settings, clock: DatabaseClock) -> AsyncIterator[None]:
    """Take in letters where the settings say, and let mailboxes tell of new ones."""
    async with contextlib.AsyncExitStack() as stack:
        if settings.mail_listen is not None:
            await stack.enter_async_context(Receiver(store, settings, settings.mail_listen, clock))
        fetcher = await stack.enter_async_context(make_fetcher(settings))
        watching = asyncio.create_task(MailWatcher(store, settings, fetcher, clock).run())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.wait((watching,))


async def serve(
    store: Store,
    settings: Settings,
    *,
    stopping_on_signals: Callable[[Callable[[], None]], contextlib.AbstractContextManager[None]],
    on_ready: Callable[[str], None],
    on_sign_in_link: Callable[[str], None] | None = None,
    collecting: Collecting | None = None,
) -> bool:
    """Collect, work on pipelines and show until a signal. Answers False when something had to be cut short.

    `on_sign_in_link` is told a link that signs in once, if there is no other way to sign in. `collecting` is what
    collects beside; without it the event loop of the dashboard does both.
    """
    collecting = collecting or CollectingHere(store, settings)
    stopped = asyncio.Event()
    with contextlib.closing(listen(settings.host, settings.port)) as listener:

        def stop() -> None:
            collecting.stop()
            stopped.set()

        with stopping_on_signals(stop):
            clock = DatabaseClock(store)
            await store.read(clock.measure)
            async with _taking_letters(store, settings, clock):
                app = create_app(store, settings, clock=clock, is_collecting=lambda: collecting.is_alive)
                await _end_old_sessions(store, app)
                serving = asyncio.create_task(serve_app(app, listener, stopped))
                running = asyncio.create_task(collecting.run())
                helpers = (
                    asyncio.create_task(Indexer(store, clock).run()),
                    *(() if store.is_sqlite else (asyncio.create_task(_keep_time(store, clock)),)),
                )
                on_ready(address_of(listener))
                if on_sign_in_link is not None:
                    await _tell_way_in(store, settings, listener.getsockname()[1], on_sign_in_link)
                await asyncio.wait((serving, running), return_when=asyncio.FIRST_COMPLETED)
                stop()
                for helper in helpers:
                    helper.cancel()
                # All end before an error of one is raised: visits under way are settled or given back.
                await asyncio.wait((serving, running, *helpers))
                finished = running.result()
                serving.result()
        return finished

"""What `headwater collect --loop` shows on a terminal while it works: numbers that move, log lines above them."""

import asyncio
import contextlib
import logging
import sys
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from headwater.language import translate as t
from headwater.wording import NOTHING, ago, duration

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from headwater.collect.engine import Engine
    from headwater.store.core.database import Store

REFRESH_SECONDS = 0.5
LOOK_SECONDS = 2.0
RATE_SECONDS = 10.0


class LiveView:
    """The numbers of one engine."""

    def __init__(self, engine: "Engine", store: "Store") -> None:
        self._engine = engine
        self._store = store
        self._begun = time.monotonic()
        self._seen: deque[tuple[float, int]] = deque([(self._begun, 0)])
        self._next_due_at: float | None = None

    async def look(self) -> None:
        from headwater.errors import StoreError
        from headwater.store.collecting.queue import next_due_at

        with contextlib.suppress(StoreError):  # the engine says so itself
            self._next_due_at = await self._store.read(next_due_at, self._engine.clock())

    def _rate(self) -> float:
        now, visits = time.monotonic(), self._engine.tally.visits
        self._seen.append((now, visits))
        while len(self._seen) > 2 and self._seen[0][0] < now - RATE_SECONDS:
            self._seen.popleft()
        then, before = self._seen[0]
        return (visits - before) / (now - then) if now > then else 0.0

    def render(self) -> "RenderableType":
        from rich.table import Table
        from rich.text import Text

        tally, now = self._engine.tally, self._engine.clock()
        if self._next_due_at is None:
            due = NOTHING
        else:
            due = t("now") if self._next_due_at <= now else ago(self._next_due_at, now)
        table = Table.grid(padding=(0, 2))
        for name, value in (
            (t("Running"), duration(time.monotonic() - self._begun)),
            (t("Visits"), t("{count} ({rate:.1f} a second)").format(count=tally.visits, rate=self._rate())),
            (t("In flight"), str(self._engine.in_flight)),
            (t("New items"), str(tally.items_new)),
            (t("Failed"), str(tally.failed)),
            (t("Next visit"), due),
        ):
            table.add_row(Text(name, style="bold"), Text(value))
        return table


class _AboveHandler(logging.Handler):
    """Prints log lines above the moving numbers."""

    def __init__(self, console: "Console", formatter: logging.Formatter | None) -> None:
        super().__init__()
        self._console = console
        self.setFormatter(formatter)

    def emit(self, record: logging.LogRecord) -> None:
        from rich.text import Text

        self._console.print(Text(self.format(record)))


@contextlib.asynccontextmanager
async def showing(engine: "Engine", store: "Store", *, wanted: bool) -> AsyncIterator[None]:
    """Show the engine's numbers while it works, if there is a terminal to show them on.

    The terminal is as it was afterwards, however this ends.
    """
    if not wanted or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    view = LiveView(engine, store)
    root = logging.getLogger()
    plain = root.handlers[:]
    with Live(view.render(), console=console, auto_refresh=False, transient=True) as live:
        root.handlers = [_AboveHandler(console, plain[0].formatter if plain else None)]

        async def move() -> None:
            looked = 0.0
            while True:
                if time.monotonic() - looked >= LOOK_SECONDS:
                    await view.look()
                    looked = time.monotonic()
                live.update(view.render(), refresh=True)
                await asyncio.sleep(REFRESH_SECONDS)

        moving = asyncio.create_task(move())
        try:
            yield
        finally:
            moving.cancel()
            await asyncio.wait((moving,))
            root.handlers = plain

"""The demo's publisher with as many sources as are wanted, and a webhook that remembers what it was told."""

import asyncio
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any, Self

from fastapi import FastAPI, Request, Response

from headwater.demo.publisher import create_publisher
from headwater.demo.sources import CORRECTED_AFTER_SECONDS, HISTORY_SECONDS, DemoSource, many
from headwater.web.server import address_of, listen, serve_app

Known = tuple[str, int]  # an item: its source's name in addresses, and its number

# What a feed shows: more than can be published while its source is rightly left alone, for what left the feed by then
# would not be a fault and could not be told from what was lost by ours. That visits do not come late is looked at
# for itself. Documents are as large at the end as in the beginning, and so should be the memory of their readers.
WINDOW_SECONDS = HISTORY_SECONDS


@dataclass(frozen=True)
class Published:
    """What there was."""

    everything: dict[Known, float]  # and when
    due: set[Known]  # what no reader may have missed
    to_correct: set[Known]
    corrected: set[Known]  # those of them whose correction has come out


class Publishing:
    """Publishes in a thread until it is told to publish nothing more; answers for what it has until it is left."""

    def __init__(self, count: int) -> None:
        self.sources: tuple[DemoSource, ...] = many(count)
        self.requests = 0
        self.deliveries: dict[str, dict[Known, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        self._start_at = time.time()
        self._counted_from = self._start_at
        self._ended_at: float | None = None
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._listener = listen("127.0.0.1", 0)
        self.base = address_of(self._listener).rstrip("/")
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(15)

    def now(self) -> float:
        return time.time() if self._ended_at is None else self._ended_at

    def count_from_now(self) -> None:
        """All have seen every source once: what comes from now on must not be missed."""
        self._counted_from = time.time()

    def end(self) -> None:
        self._ended_at = time.time()

    def published(self) -> "Published":
        everything: dict[Known, float] = {}
        corrected: set[Known] = set()
        for source in self.sources:
            for item in source.items(self._start_at, self.now()):
                everything[source.slug, item.number] = item.published_at
                if source.will_correct(item.number):
                    corrected.add((source.slug, item.number))
        due = {each for each, at in everything.items() if at > self._counted_from}
        final = {each for each in corrected if everything[each] + CORRECTED_AFTER_SECONDS < self.now()}
        return Published(everything, due, corrected, final)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        app = create_publisher(
            self.sources, start_at=self._start_at, clock=self.now, window_seconds=WINDOW_SECONDS
        )
        self._add_webhook(app)
        self._loop.run_until_complete(serve_app(app, self._listener, self._stopped))
        self._loop.close()

    def _add_webhook(self, app: FastAPI) -> None:
        @app.middleware("http")
        async def count(request: Request, call_next: Any) -> Response:
            self.requests += 1
            answer: Response = await call_next(request)
            return answer

        @app.post("/hook/{name}")
        async def hook(name: str, request: Request) -> dict[str, str]:
            told = await request.json()
            self.deliveries[name][known(told["content_item"]["url"])][told["idempotency_key"]] += 1
            return {}


def known(url: str) -> Known:
    slug, _, number = url.split("/", 3)[3].partition("/")
    return slug, int(number.partition("-")[0])

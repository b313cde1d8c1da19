"""Who collects while the dashboard is served: this process, or others that it starts."""

from typing import Protocol

from headwater.collect.engine import Engine, Tally
from headwater.config import Settings
from headwater.fetch.client import make_fetcher
from headwater.pipeline.embedded import EmbeddedWorker
from headwater.publish.publisher import Publisher
from headwater.store.core.database import Store


class Collecting(Protocol):
    """Something that collects until it is told to stop."""

    async def run(self) -> bool:
        """Collect until `stop`. False when something had to be cut short."""
        ...

    def stop(self) -> None: ...

    @property
    def is_alive(self) -> bool:
        """Whether something collects at this moment."""
        ...


class CollectingHere:
    """Collects and publishes on the event loop of this process, and works on the pipelines of a SQLite database."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._engine = Engine(store, settings)
        self._embedded = EmbeddedWorker(store, settings, make_fetcher)
        self._publisher = Publisher(store, settings, make_fetcher)
        self._is_running = False

    async def run(self) -> bool:
        async with self._engine, self._embedded, self._publisher:
            self._is_running = True
            try:
                finished = await self._engine.run()
            finally:
                self._is_running = False
        return finished and self._embedded.finished

    def stop(self) -> None:
        self._engine.stop()
        self._embedded.stop()
        self._publisher.stop()

    @property
    def tally(self) -> Tally:
        return self._engine.tally

    @property
    def is_alive(self) -> bool:
        return self._is_running

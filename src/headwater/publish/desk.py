"""The desk at which issues of digests are written: the network, secrets and models."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from headwater.config import Settings
from headwater.fetch.client import Fetcher, make_fetcher
from headwater.pipeline.ledger import Ledger, make_ledger
from headwater.services.asking import secrets_for_steps
from headwater.store.core.database import Store


@dataclass(frozen=True, slots=True)
class Desk:
    """What writing an issue needs from outside."""

    fetcher: Fetcher | None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    models: Ledger | None = None


@asynccontextmanager
async def open_desk(store: Store, settings: Settings, clock: Callable[[], float]) -> AsyncIterator[Desk]:
    """A desk for a person who waits for an issue."""
    async with make_fetcher(settings) as fetcher:
        yield Desk(fetcher, secrets_for_steps(settings.secrets), make_ledger(store, settings, clock))

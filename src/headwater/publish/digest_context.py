"""What writing the issues of digests needs: the network, secrets and models."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from headwater.config import Settings
from headwater.fetch.client import Fetcher, make_fetcher
from headwater.pipeline.ledger import Ledger, make_ledger
from headwater.services.requests import secrets_for_steps
from headwater.store.core.database import Store


@dataclass(frozen=True, slots=True)
class DigestContext:
    """What writing an issue needs from outside."""

    fetcher: Fetcher | None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    models: Ledger | None = None


@asynccontextmanager
async def open_digest_context(
    store: Store, settings: Settings, clock: Callable[[], float]
) -> AsyncIterator[DigestContext]:
    """The context for a command or request that makes an issue."""
    async with make_fetcher(settings) as fetcher:
        yield DigestContext(fetcher, secrets_for_steps(settings.secrets), make_ledger(store, settings, clock))

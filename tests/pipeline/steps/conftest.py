from collections.abc import AsyncIterator

import pytest

from headwater.fetch import Fetcher
from tests.fetch import door


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    async with door(max_bytes=5_000_000, total_seconds=30.0) as opened:
        yield opened

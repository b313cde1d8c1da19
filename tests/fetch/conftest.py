from collections.abc import AsyncIterator, Iterator

import pytest

from headwater.fetch import Fetcher
from tests.fetch import door
from tests.origin import Origin


@pytest.fixture
def origin() -> Iterator[Origin]:
    with Origin() as started:
        yield started


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    async with door() as opened:
        yield opened

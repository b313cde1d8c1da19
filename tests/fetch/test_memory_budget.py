"""Room for large responses: what does not fit waits, on the network and not in memory."""

import asyncio
from contextvars import Context
from random import Random

import pytest

from headwater.errors import FailureKind, FetchError
from headwater.fetch import Fetcher, Request, memory_budget
from tests.fetch import door
from tests.origin import Encoding, Origin, compress

LARGE = Random(1).randbytes(800_000)  # more than is small, less than the cap of the door


@pytest.fixture(autouse=True)
def _small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_budget, "_budget", memory_budget.MemoryBudget(1_000_000))


@pytest.mark.parametrize("encoding", [None, "gzip"])
async def test_large_response_waits_until_another_is_let_go(
    origin: Origin, fetcher: Fetcher, encoding: Encoding | None
) -> None:
    headers = {"Content-Encoding": encoding} if encoding else {}
    url = origin.route("/large", body=compress(LARGE, encoding) if encoding else LARGE, headers=headers)
    small = origin.route("/small", body=b"small")
    with memory_budget.holding_responses():
        assert (await fetcher.get(Request(url))).body == LARGE
        second = asyncio.create_task(fetcher.get(Request(url)), context=Context())
        await asyncio.sleep(0.3)
        assert not second.done()
        assert (await fetcher.get(Request(small))).body == b"small"
    assert (await asyncio.wait_for(second, 3)).body == LARGE


async def test_large_response_that_waits_too_long_fails_by_its_time(origin: Origin) -> None:
    url = origin.route("/large", body=LARGE)
    async with door(total_seconds=0.3) as fetcher:
        with memory_budget.holding_responses():
            await fetcher.get(Request(url))
            second = asyncio.create_task(fetcher.get(Request(url)), context=Context())
            await asyncio.sleep(0.6)
        with pytest.raises(FetchError) as caught:
            await asyncio.wait_for(second, 3)
        assert caught.value.kind is FailureKind.TIMEOUT


async def test_large_response_that_is_given_up_while_it_waits_gives_nothing_back(
    origin: Origin, fetcher: Fetcher
) -> None:
    url = origin.route("/large", body=LARGE)
    with memory_budget.holding_responses():
        await fetcher.get(Request(url))
        second = asyncio.create_task(fetcher.get(Request(url)), context=Context())
        await asyncio.sleep(0.2)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
    assert (await asyncio.wait_for(fetcher.get(Request(url)), 3)).body == LARGE

"""Turns of hosts: how many, how far apart, and what 429 and 503 do to them."""

import asyncio
import time
from collections.abc import Awaitable
from itertools import pairwise

import pytest

from headwater.errors import FailureKind, FetchError
from headwater.fetch import Request
from headwater.fetch.politeness import Politeness, Slots
from tests.fetch import door
from tests.origin import Answer, Origin


class Clock:
    """A clock that stands still until told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def waits(politeness: Politeness, host: str = "h") -> asyncio.Task[None]:
    return asyncio.create_task(politeness.enter(host, "http://h/"))


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def refused(entering: Awaitable[None]) -> FetchError:
    with pytest.raises(FetchError) as caught:
        await entering
    error = caught.value
    assert (error.kind, error.http_status) == (FailureKind.RATE_LIMITED, None)
    return error


async def test_two_at_once_then_in_order() -> None:
    politeness = Politeness(concurrency=2, spacing_seconds=0)
    assert politeness.try_enter("h")
    assert politeness.try_enter("h")
    assert not politeness.try_enter("h")
    assert politeness.try_enter("other")
    third, fourth = waits(politeness), waits(politeness)
    await settle()
    assert not third.done()
    politeness.leave("h", 200)
    await settle()
    assert third.done()
    assert not fourth.done()
    politeness.leave("h", 200)
    await fourth


async def test_who_comes_later_does_not_push_in() -> None:
    politeness = Politeness(concurrency=1, spacing_seconds=0)
    assert politeness.try_enter("h")
    waiting = waits(politeness)
    await settle()
    politeness.leave("h")
    # the turn went to the one that waits, at once
    assert not politeness.try_enter("h")
    await waiting


async def test_spacing() -> None:
    politeness = Politeness(concurrency=5, spacing_seconds=0.1)
    times: list[float] = []

    async def visit() -> None:
        await politeness.enter("h", "http://h/")
        times.append(time.monotonic())
        politeness.leave("h", 200)

    await asyncio.gather(*(visit() for _ in range(4)))
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert all(0.09 < gap < 0.3 for gap in gaps)


@pytest.mark.parametrize(("status", "retry_after"), [(429, 100.0), (503, 100.0), (429, None)])
async def test_a_host_that_asks_for_it_rests(status: int, retry_after: float | None) -> None:
    clock = Clock()
    politeness = Politeness(clock=clock)
    assert politeness.try_enter("h")
    politeness.leave("h", status, retry_after)
    seconds = retry_after or 60.0
    error = await refused(politeness.enter("h", "http://h/feed"))
    assert error.retry_after_seconds == seconds
    assert (
        str(error)
        == f"http://h/feed: not asked, because h wants no requests for another {seconds:.0f} seconds."
    )
    assert politeness.try_enter("other")
    clock.now += seconds - 1
    assert not politeness.try_enter("h")
    clock.now += 1
    assert politeness.try_enter("h")


async def test_rests_grow_and_end() -> None:
    clock = Clock()
    politeness = Politeness(clock=clock)
    lengths = []
    for _ in range(9):
        assert politeness.try_enter("h")
        politeness.leave("h", 429)
        error = await refused(politeness.enter("h", "u"))
        assert error.retry_after_seconds is not None
        lengths.append(error.retry_after_seconds)
        clock.now += error.retry_after_seconds
    assert lengths == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    assert politeness.try_enter("h")
    politeness.leave("h", 304)
    clock.now += 5
    assert politeness.try_enter("h")
    politeness.leave("h", 429)
    assert (await refused(politeness.enter("h", "u"))).retry_after_seconds == 60


async def test_a_rest_is_at_most_an_hour_whatever_a_feed_was_told() -> None:
    clock = Clock()
    politeness = Politeness(clock=clock)
    assert politeness.try_enter("h")
    politeness.leave("h", 429, 7 * 86400.0)
    assert (await refused(politeness.enter("h", "u"))).retry_after_seconds == 3600


async def test_answers_to_requests_sent_before_the_rest_count_once() -> None:
    clock = Clock()
    politeness = Politeness(clock=clock, spacing_seconds=0)
    assert politeness.try_enter("h")
    assert politeness.try_enter("h")
    politeness.leave("h", 429)
    politeness.leave("h", 429)
    clock.now += 120
    assert politeness.try_enter("h")
    politeness.leave("h", 429)
    assert (await refused(politeness.enter("h", "u"))).retry_after_seconds == 120


async def test_one_broken_page_only_slows_its_host() -> None:
    clock = Clock()
    politeness = Politeness(clock=clock, spacing_seconds=0)
    assert politeness.try_enter("h")
    politeness.leave("h", 503)
    clock.now += 0.1
    assert politeness.try_enter("h")
    assert not politeness.try_enter("h")  # one at a time
    politeness.leave("h", 404)
    assert not politeness.try_enter("h")  # further apart
    clock.now += 5
    assert politeness.try_enter("h")
    politeness.leave("h", 200)
    clock.now += 5
    assert politeness.try_enter("h")
    assert politeness.try_enter("h")


async def test_waiting_requests_hear_of_a_long_rest_at_once() -> None:
    politeness = Politeness(concurrency=1, spacing_seconds=0)
    assert politeness.try_enter("h")
    waiting = [waits(politeness) for _ in range(3)]
    await settle()
    politeness.leave("h", 429, 1000.0)
    for task in waiting:
        error = await refused(asyncio.wait_for(task, 0.5))
        assert error.retry_after_seconds is not None
        assert 990 < error.retry_after_seconds <= 1000


async def test_a_short_rest_is_waited_for() -> None:
    politeness = Politeness(concurrency=1, spacing_seconds=0)
    assert politeness.try_enter("h")
    politeness.leave("h", 503, 0.2)
    began = time.monotonic()
    await politeness.enter("h", "u")
    assert 0.15 < time.monotonic() - began < 1.0


async def test_a_queue_that_is_too_long_says_so_at_once() -> None:
    politeness = Politeness(concurrency=1, spacing_seconds=1.0, patience_seconds=2.5)
    assert politeness.try_enter("h")
    waiting = [waits(politeness) for _ in range(2)]
    await settle()
    error = await refused(asyncio.wait_for(politeness.enter("h", "http://h/x"), 0.2))
    assert "http://h/x" in str(error)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_patience_ends() -> None:
    politeness = Politeness(concurrency=1, spacing_seconds=0, patience_seconds=0.1)
    assert politeness.try_enter("h")
    await refused(politeness.enter("h", "u"))
    politeness.leave("h", 200)
    assert politeness.try_enter("h")


async def test_giving_up_gives_the_place_to_the_next() -> None:
    politeness = Politeness(concurrency=1, spacing_seconds=0)
    assert politeness.try_enter("h")
    first, second = waits(politeness), waits(politeness)
    await settle()
    first.cancel()
    await settle()
    politeness.leave("h")
    await asyncio.wait_for(second, 1)
    politeness.leave("h")
    assert politeness.try_enter("h")


async def test_giving_up_in_the_moment_of_the_turn_loses_no_turn() -> None:
    politeness = Politeness(concurrency=1, spacing_seconds=0)
    slots = Slots(1)
    for _ in range(3):
        assert politeness.try_enter("h")
        assert slots.try_take()
        waiting = [waits(politeness), asyncio.create_task(slots.take())]
        await settle()
        politeness.leave("h")
        slots.give()
        for task in waiting:  # both were given their turn, and have not run since
            task.cancel()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results)
        assert politeness.try_enter("h")
        assert slots.try_take()
        politeness.leave("h")
        slots.give()


async def test_idle_hosts_are_forgotten() -> None:
    clock = Clock()
    politeness = Politeness(clock=clock)
    assert politeness.try_enter("busy")
    assert politeness.try_enter("resting")
    politeness.leave("resting", 429, 3000.0)
    for number in range(20_000):
        host = f"host{number}"
        assert politeness.try_enter(host)
        politeness.leave(host, 200)
        clock.now += 0.01
    assert len(politeness) < 2000
    assert not politeness.try_enter("resting")
    politeness.leave("busy", 200)


async def test_slots() -> None:
    slots = Slots(2)
    await slots.take()
    assert slots.try_take()
    assert not slots.try_take()
    first, second = asyncio.create_task(slots.take()), asyncio.create_task(slots.take())
    await settle()
    first.cancel()
    await settle()
    slots.give()
    await second
    assert not slots.try_take()
    slots.give()
    assert slots.try_take()


# -- through the door -------------------------------------------------------------------------------------


async def test_no_storm_at_the_start(origin: Origin) -> None:
    origin.otherwise(b"x")
    async with door(host_spacing_seconds=0.05) as fetcher:
        await asyncio.gather(*(fetcher.get(Request(origin.url(f"/{number}"))) for number in range(8)))
    times = [request.at for request in origin.requests]
    assert times[-1] - times[0] > 0.3
    assert origin.most_at_once <= 2


async def test_a_redirect_on_the_same_host_is_the_same_turn(origin: Origin) -> None:
    origin.route("/a", status=301, location="/b")
    origin.route("/b", body=b"x")
    async with door(host_concurrency=1, host_spacing_seconds=30.0) as fetcher:
        began = time.monotonic()
        await fetcher.get(Request(origin.url("/a")))
        assert time.monotonic() - began < 2


async def test_a_redirect_to_another_host_takes_its_turn_there(origin: Origin) -> None:
    with Origin(host="127.0.0.2") as other:
        # Each redirects to the other: holding one turn while waiting for the other would never end.
        origin.route("/a", status=302, location=other.url("/end"), delay=0.05)
        origin.route("/end", body=b"x")
        other.route("/a", status=302, location=origin.url("/end"), delay=0.05)
        other.route("/end", body=b"x")
        async with door(host_concurrency=1) as fetcher:
            urls = [origin.url("/a"), other.url("/a")] * 4
            async with asyncio.timeout(5):
                await asyncio.gather(*(fetcher.get(Request(url)) for url in urls))
        assert origin.most_at_once == other.most_at_once == 1


@pytest.mark.parametrize("status", [429, 503])
async def test_one_answer_slows_the_whole_host(origin: Origin, status: int) -> None:
    origin.route("/a", [Answer(status=status, headers={"Retry-After": "500"}), Answer(b"x")])
    origin.route("/b", body=b"x")
    with Origin(host="127.0.0.2") as other:
        other.route("/c", body=b"x")
        async with door() as fetcher:
            with pytest.raises(FetchError):
                await fetcher.get(Request(origin.url("/a")))
            for path in ("/a", "/b"):
                error = await _fetch_error(fetcher.get(Request(origin.url(path))))
                assert error.http_status is None
            assert (await fetcher.get(Request(other.url("/c")))).body == b"x"
    assert len(origin.requests) == 1


async def _fetch_error(getting: Awaitable[object]) -> FetchError:
    with pytest.raises(FetchError) as caught:
        await getting
    return caught.value

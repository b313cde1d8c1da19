"""Group commits when the database is away, gone, or will not take something."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.collect.settler import Settler
from headwater.errors import StoreError
from headwater.model import Plan, Source
from headwater.store.collecting.queue import Settlement, claim_due
from headwater.store.core import retry as patience
from headwater.store.core.database import Store
from tests.clock import NOON
from tests.store.collecting.test_queue import done, make


def away() -> StoreError:
    error = StoreError("the database {url} failed: {problem}", url="x", problem="away")
    error.passing = True
    return error


def gone() -> StoreError:
    return StoreError("the database {url} failed: {problem}", url="x", problem="gone")


class FaultyStore(Store):
    """A real store whose writes fail as told, before or after they are committed."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.faults: list[StoreError | None] = []
        self.lose_answers = 0
        self.writes = 0

    async def write(self, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.writes += 1
        if self.faults and (fault := self.faults.pop(0)) is not None:
            raise fault
        result = await super().write(work, *args, **kwargs)
        if self.lose_answers:
            self.lose_answers -= 1
            raise away()
        return result


@pytest.fixture
def faulty(sqlite_template: Path, tmp_path: Path) -> FaultyStore:
    (tmp_path / "faulty.db").write_bytes(sqlite_template.read_bytes())
    return FaultyStore(f"sqlite:///{tmp_path / 'faulty.db'}")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PAUSES", (0.01, 0.01))
    monkeypatch.setattr(patience, "LONGEST_PAUSE", 0.02)


def claimed(store: Store, count: int) -> list[Source]:
    with store.writing() as connection:
        for number in range(count):
            make(connection, f"s{number}")
        return claim_due(connection, count, now=NOON, lease_until=NOON + 100)


def make_settler(store: Store, settled: list[Settlement], *, give_up: bool = False) -> Settler:
    return Settler(
        store,
        expecting=lambda: True,
        on_settled=settled.append,
        on_refused=lambda settlement, error: Settlement(
            settlement.before, settlement.after, settlement.visit
        ),
        give_up=lambda: give_up,
    )


async def put_all(settler: Settler, sources: list[Source]) -> None:
    for source in sources:
        await settler.put(done(source, NOON, Plan(NOON + 60)))
    await settler.finish()


async def test_results_that_end_together_are_committed_together(faulty: FaultyStore) -> None:
    settled: list[Settlement] = []
    settler = make_settler(faulty, settled)
    running = asyncio.create_task(settler.run())
    await put_all(settler, claimed(faulty, 90))
    await running
    assert len(settled) == 90
    assert faulty.writes == 1


async def test_a_database_that_is_away_for_a_moment_is_waited_for(faulty: FaultyStore) -> None:
    settled: list[Settlement] = []
    faulty.faults = [away() for _ in range(5)]
    settler = make_settler(faulty, settled)
    running = asyncio.create_task(settler.run())
    await put_all(settler, claimed(faulty, 3))
    await running
    assert len(settled) == 3


async def test_an_answer_that_was_lost_counts_once(faulty: FaultyStore) -> None:
    settled: list[Settlement] = []
    faulty.lose_answers = 1
    settler = make_settler(faulty, settled)
    running = asyncio.create_task(settler.run())
    await put_all(settler, claimed(faulty, 3))
    await running
    assert len(settled) == 3
    with faulty.reading() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM collection_records").scalar_one() == 3
        assert connection.exec_driver_sql("SELECT sum(fetch_count) FROM sources").scalar_one() == 3


async def test_a_group_that_is_refused_is_committed_one_by_one(faulty: FaultyStore) -> None:
    settled: list[Settlement] = []
    # The group, then the second of three alone; what records its failure is taken.
    faulty.faults = [gone(), None, gone(), None, None]
    settler = make_settler(faulty, settled)
    running = asyncio.create_task(settler.run())
    await put_all(settler, claimed(faulty, 3))
    await running
    assert len(settled) == 3


async def test_database_gone_for_good_ends_every_wait(faulty: FaultyStore) -> None:
    settled: list[Settlement] = []
    sources = claimed(faulty, 3)
    faulty.faults = [gone() for _ in range(100)]
    settler = make_settler(faulty, settled)
    running = asyncio.create_task(settler.run())
    many = [done(sources[number % 3], NOON, Plan(NOON + 60)) for number in range(1_000)]
    async with asyncio.timeout(10):
        await asyncio.gather(*(settler.put(settlement) for settlement in many))
        with pytest.raises(StoreError, match="gone"):
            await running
        await settler.finish()
    assert settled == []


async def test_too_late_to_wait(faulty: FaultyStore) -> None:
    """At the end of a stop's grace, a database that is away is not waited for; the leases expire instead."""
    settled: list[Settlement] = []
    faulty.faults = [away()]
    settler = make_settler(faulty, settled, give_up=True)
    running = asyncio.create_task(settler.run())
    await put_all(settler, claimed(faulty, 1))
    with pytest.raises(StoreError, match="away"):
        await running
    assert settled == []

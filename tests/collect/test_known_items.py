"""Visits that have found something share a read of the database, and each gets its own answer."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from headwater.collect.decide import Candidate, candidates
from headwater.collect.known_items import READS_AT_ONCE, KnownItems
from headwater.errors import StoreError
from headwater.model import Item
from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from headwater.store.reading.items import ItemChange, write_items
from tests.clock import NOON


def some(*names: str) -> list[Candidate]:
    return candidates(tuple(Item(name, title=name, published_at=NOON - 60) for name in names), NOON)


def remember(store: Store, number: int, *names: str) -> int:
    with store.writing() as connection:
        source = add_source(
            connection, name=str(number), type="rss.feed", url=f"https://{number}.example/", now=NOON
        )
        changes = tuple(
            ItemChange(
                "new", each.item, each.id_key, each.id_key, each.likenesses, each.content_hash, NOON - 60
            )
            for each in some(*names)
        )
        write_items(connection, [(source.id, changes, NOON)])
    return source.id


class Slow:
    """A store whose reads are counted, and wait to be let go."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.reads = 0
        self.go = asyncio.Event()

    async def read(self, work: Callable[..., Any], *args: Any) -> Any:
        self.reads += 1
        await self.go.wait()
        return await self._store.read(work, *args)


async def test_each_gets_its_own_answer_and_they_share_reads(store: Store) -> None:
    ids = [remember(store, number, "a", f"only{number}") for number in range(12)]
    slow = Slow(store)
    recall = KnownItems(slow)  # type: ignore[arg-type]
    asked = [
        asyncio.create_task(recall.ask(source_id, some("a", f"only{number}", "new"), number % 2))
        for number, source_id in enumerate(ids)
    ]
    await asyncio.sleep(0.01)
    asked[5].cancel()
    slow.go.set()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    for number, answer in enumerate(answers):
        if number == 5:
            assert isinstance(answer, asyncio.CancelledError)
            continue
        assert not isinstance(answer, BaseException)
        known, history = answer
        assert {
            each.item.external_id for each in some("a", f"only{number}", "new") if each.id_key in known
        } == {
            "a",
            f"only{number}",
        }
        assert history == [NOON - 60] * (number % 2)
    assert slow.reads <= READS_AT_ONCE + 2


async def test_who_has_another_id_is_known_by_its_likeness(store: Store) -> None:
    text = "a text that is long enough to tell one item from another " * 3
    old = candidates((Item("old", title="t", content=text, published_at=NOON - 60),), NOON)
    new = candidates((Item("new", title="t", content=text, published_at=NOON - 60),), NOON)
    source_id = remember(store, 1)
    with store.writing() as connection:
        each = old[0]
        change = ItemChange(
            "new", each.item, each.id_key, each.id_key, each.likenesses, each.content_hash, NOON - 60
        )
        write_items(connection, [(source_id, (change,), NOON)])
    known, _ = await KnownItems(store).ask(source_id, new, 0)
    assert {memory.item_key for memory in known.values()} == {old[0].id_key}


async def test_a_database_that_is_away_is_told_to_all_who_wait(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*arguments: Any) -> None:
        raise StoreError("away")

    monkeypatch.setattr(store, "read", fail)
    recall = KnownItems(store)
    answers = await asyncio.gather(
        *(recall.ask(number, some("a"), 0) for number in range(5)), return_exceptions=True
    )
    assert [type(answer) for answer in answers] == [StoreError] * 5


async def test_who_asks_in_the_moment_in_which_the_last_read_ends_is_answered(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = 0
    go = asyncio.Event()

    async def answer(_work: object, group: list[object]) -> list[object]:
        nonlocal begun
        begun += 1
        await go.wait()
        return [({}, [])] * len(group)

    async def ask_twice() -> None:
        await recall.ask(1, [], 0)
        await recall.ask(1, [], 0)  # when the readers are at their end, but not yet known to be

    monkeypatch.setattr(store, "read", answer)
    recall = KnownItems(store)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(ask_twice())
        for number in range(1, READS_AT_ONCE + 1):
            while begun < number:
                await asyncio.sleep(0)
            if number < READS_AT_ONCE:
                tasks.create_task(recall.ask(1 + number, [], 0))
        go.set()


async def test_two_visits_of_one_source_each_get_their_own_answer(store: Store) -> None:
    source_id = remember(store, 1, "a", "b")
    slow = Slow(store)
    recall = KnownItems(slow)  # type: ignore[arg-type]
    busy = [asyncio.create_task(recall.ask(source_id, [], 0)) for _ in range(READS_AT_ONCE)]
    await asyncio.sleep(0)
    asked = [asyncio.create_task(recall.ask(source_id, some(name), 0)) for name in ("a", "b")]
    await asyncio.sleep(0.01)
    slow.go.set()
    await asyncio.gather(*busy)
    for name, (known, _) in zip(("a", "b"), await asyncio.gather(*asked), strict=True):
        assert some(name)[0].id_key in known

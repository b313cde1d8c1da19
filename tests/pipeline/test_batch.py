"""Group commits: what is asked within a moment is done together, and what has no company is done at once."""

import asyncio

import pytest

from headwater.pipeline import batch as batch_module
from headwater.pipeline.batch import Batch


class Asked:
    """Work that notes its groups and doubles numbers."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []

    async def __call__(self, numbers: list[int]) -> list[int]:
        self.groups.append(numbers)
        return [2 * number for number in numbers]


async def ask_later(batch: Batch[int, int], number: int) -> int:
    await asyncio.sleep(0.01)
    return await batch.ask(number)


async def test_group_waits_a_moment_for_those_that_are_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_module, "MOMENT_SECONDS", 0.5)
    work = Asked()
    batch: Batch[int, int] = Batch(work, lambda: 2)
    assert list(await asyncio.gather(batch.ask(1), ask_later(batch, 2))) == [2, 4]
    assert work.groups == [[1, 2]]


async def test_group_that_is_complete_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_module, "MOMENT_SECONDS", 3_600.0)
    work = Asked()
    batch: Batch[int, int] = Batch(work, lambda: 2)
    async with asyncio.timeout(10):
        assert list(await asyncio.gather(batch.ask(1), batch.ask(2))) == [2, 4]
    assert work.groups == [[1, 2]]

"""Group commits: what many tasks ask of the database within a moment is done in one transaction."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from headwater.errors import StoreError

A = TypeVar("A", bound=Hashable)
R = TypeVar("R")

MOST = 200
MOMENT_SECONDS = 0.002  # how long a group waits for those that may soon ask, too: a transaction costs more


class Batch(Generic[A, R]):
    """Calls `work` with all that was asked while it last ran. `work` returns one result for each, in order.

    `expected`: how many may ask at about the same time. As long as fewer have, the group waits a moment.
    """

    def __init__(self, work: Callable[[list[A]], Awaitable[list[R]]], expected: Callable[[], int]) -> None:
        self._work = work
        self._expected = expected
        self._waiting: list[tuple[A, asyncio.Future[R]]] = []
        self._running: asyncio.Task[None] | None = None

    async def ask(self, question: A) -> R:
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, future))
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return await future

    async def _run(self) -> None:
        try:
            while self._waiting:
                if len(self._waiting) < self._expected():
                    await asyncio.sleep(MOMENT_SECONDS)
                group, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
                await self._answer(group)
        finally:
            self._running = None

    async def _answer(self, group: "list[tuple[A, asyncio.Future[R]]]") -> None:
        try:
            results = await self._work([question for question, _ in group])
        except StoreError as error:
            if len(group) > 1 and not error.passing:
                # One of them may be what the database refuses: the others must not pay for it.
                for each in group:
                    await self._answer([each])
                return
            _fail(group, error)
        except BaseException as error:
            _fail(group, error)
            if not isinstance(error, Exception):
                raise
        else:
            for (_, future), result in zip(group, results, strict=True):
                if not future.done():
                    future.set_result(result)


def _fail(group: "list[tuple[A, asyncio.Future[R]]]", error: BaseException) -> None:
    for _, future in group:
        if not future.done():
            future.set_exception(error)

"""Mailboxes that announce new e-mails: their sources are visited at once, and only those that want it are watched."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from headwater.config import load_settings
from headwater.errors import FailureKind, FetchError
from headwater.newsletters import idle
from headwater.newsletters.idle import MailWatcher
from headwater.store.collecting.sources import add_source, set_schedule_enabled
from headwater.store.core.database import Store
from headwater.store.core.tables import sources
from tests.clock import FakeClock


class Mailboxes:
    """Stand in for mail servers: a test says when one has news, and sees which are listened to."""

    def __init__(self) -> None:
        self.news: dict[str, asyncio.Event] = {}
        self.listening: list[str] = []
        self.can_wait = True
        self.refusals: list[str] = []

    @contextlib.asynccontextmanager
    async def open_mailbox(self, fetcher: object, address: Any) -> AsyncIterator["Mailboxes.Box"]:
        if address.user in self.refusals:
            raise FetchError(FailureKind.UNAUTHORIZED, "no")
        self.listening.append(address.user)
        try:
            yield self.Box(self, address.user)
        finally:
            self.listening.remove(address.user)

    class Box:
        def __init__(self, all_of_them: "Mailboxes", user: str) -> None:
            self.can_wait = all_of_them.can_wait
            self._news = all_of_them.news.setdefault(user, asyncio.Event())

        async def open(self, folder: str) -> None:
            assert folder == "INBOX"

        async def wait_for_news(self, seconds: float) -> bool:
            await self._news.wait()
            self._news.clear()
            return True


@pytest.fixture
def mailboxes(monkeypatch: pytest.MonkeyPatch) -> Mailboxes:
    made = Mailboxes()
    monkeypatch.setattr(idle, "open_mailbox", made.open_mailbox)
    monkeypatch.setattr(idle, "LOOK_SECONDS", 0.01)
    return made


@pytest.fixture
async def watched(
    store: Store, clock: FakeClock, tmp_path: Path, mailboxes: Mailboxes
) -> AsyncIterator[Callable[..., int]]:
    """Adds a mailbox, while the watcher runs."""

    def add(user: str, **config: object) -> int:
        with store.writing() as connection:
            url = f"imaps://{user}@mail.example.org/INBOX"
            return add_source(connection, name=user, type="mail.imap", url=url, now=clock(), config=config).id

    settings = load_settings(directory=tmp_path, environment={})
    running = asyncio.create_task(MailWatcher(store, settings, object(), clock).run())  # type: ignore[arg-type]
    yield add
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    await until(lambda: not mailboxes.listening)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


def refreshed_at(store: Store, source_id: int) -> float | None:
    with store.reading() as connection:
        asked = select(sources.c.refresh_requested_at).where(sources.c.id == source_id)
        at: float | None = connection.execute(asked).scalar_one()
    return at


async def test_source_is_visited_at_once_when_its_mailbox_has_news(
    watched: Callable[..., int], mailboxes: Mailboxes, store: Store, clock: FakeClock
) -> None:
    ann, ben = watched("ann"), watched("ben")
    await until(lambda: sorted(mailboxes.listening) == ["ann", "ben"])
    for _ in range(2):
        clock.advance(60.0)
        mailboxes.news["ann"].set()
        await until(lambda: refreshed_at(store, ann) == clock())
    assert refreshed_at(store, ben) is None


async def test_paused_and_unwilling_sources_are_not_listened_to(
    watched: Callable[..., int], mailboxes: Mailboxes, store: Store, clock: FakeClock
) -> None:
    watched("silent", idle=False)
    ann = watched("ann")
    await until(lambda: mailboxes.listening == ["ann"])
    with store.writing() as connection:
        set_schedule_enabled(connection, ann, False, clock())
    await until(lambda: mailboxes.listening == [])


async def test_one_mailbox_that_fails_is_left_alone_for_a_while(
    watched: Callable[..., int], mailboxes: Mailboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle, "AFTER_FAILURE_SECONDS", 0.05)
    mailboxes.refusals = ["ann"]
    watched("ann")
    watched("ben")
    await until(lambda: mailboxes.listening == ["ben"])
    mailboxes.refusals = []
    await until(lambda: sorted(mailboxes.listening) == ["ann", "ben"])

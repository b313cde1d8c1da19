"""Announcements reach every listener, with the commit and not before, also after the connection was lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from headwater.store.collecting.sources import add_source, request_refresh
from headwater.store.core import notify
from headwater.store.core.database import Store
from headwater.store.core.notify import CHANNEL, Listener, announce
from tests.databases import empty_tables


@asynccontextmanager
async def listening(store: Store) -> AsyncIterator[asyncio.Event]:
    heard = asyncio.Event()
    listener = Listener(store, heard.set)
    task = asyncio.create_task(listener.run())
    async with asyncio.timeout(20):
        await heard.wait()  # it begins with one, for what it may have missed
    assert listener.is_listening
    heard.clear()
    yield heard
    task.cancel()
    await asyncio.wait((task,))
    assert not listener.is_listening


@pytest.mark.parametrize("what", ["new source", "refresh"])
async def test_a_change_is_announced_with_its_commit(postgres_store: Store, what: str) -> None:
    empty_tables(postgres_store)
    with postgres_store.writing() as connection:
        add_source(connection, name="a", type="rss.feed", url="http://a.example/", now=1.0)
    async with listening(postgres_store) as heard, asyncio.timeout(20):
        with postgres_store.writing() as connection:
            if what == "refresh":
                request_refresh(connection, None, 2.0)
            else:
                add_source(connection, name="b", type="rss.feed", url="http://b.example/", now=2.0)
            await asyncio.sleep(0.1)
            assert not heard.is_set(), "a listener that woke now would not find it yet"
        await heard.wait()


async def test_lost_connection_is_made_again(postgres_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "PAUSE_SECONDS", 0.05)
    async with listening(postgres_store) as heard, asyncio.timeout(20):
        with postgres_store.writing() as connection:
            connection.exec_driver_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                f" WHERE datname = current_database() AND query = 'LISTEN {CHANNEL}'"
            )
        await heard.wait()  # it is back, and says that something may have been missed
        heard.clear()
        await postgres_store.write(announce)
        await heard.wait()


async def test_on_sqlite_announcing_without_a_listener_breaks_nothing(store: Store) -> None:
    if store.is_sqlite:
        listener = Listener(store, lambda: None)
        await listener.run()
        assert not listener.is_listening
    await store.write(announce)

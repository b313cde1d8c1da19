"""Where a source's credentials go when its publisher sends visitors elsewhere."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headwater.collect.context import read_visit_context
from headwater.collect.engine import Engine
from headwater.collect.visit import MOVED_AFTER
from headwater.config import Settings, load_settings
from headwater.errors import InputError
from headwater.fetch.client import make_fetcher
from headwater.model import Plan, Source
from headwater.schedule.explain import explain_plan
from headwater.sources.adding import add_unvisited, add_what_is_there, read_new_source
from headwater.sources.editing import Edit, edit_source
from headwater.store.collecting.sources import get_source, list_sources
from headwater.store.core.database import Store
from tests.clock import FakeClock
from tests.origin import Origin, Received

RSS = b'<rss version="2.0"><channel><title>One</title><item><guid>1</guid><title>Post</title></item></channel></rss>'

CREDENTIALS: list[dict[str, Any]] = [
    {"headers": {"X-Key": "hunter2"}},
    {"cookies": {"sid": "hunter2"}},
    {"user": "ann", "password": "hunter2"},
    {"bearer_token": "hunter2"},
    {"bearer_token": "${TOKEN}"},
]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return replace(
        load_settings(directory=tmp_path, environment={"HEADWATER_SECRET_TOKEN": "hunter2"}),
        policy="interval",
        allow_hosts=("127.0.0.1",),
        host_spacing_seconds=0.0,
    )


def add(store: Store, url: str, clock: FakeClock, config: dict[str, Any]) -> Source:
    with store.writing() as connection:
        return add_unvisited(connection, read_new_source(url, config=config), clock())


async def visit(store: Store, settings: Settings, clock: FakeClock, source: Source, times: int = 1) -> Source:
    for _ in range(times):
        async with Engine(store, settings, clock=clock) as engine:
            await engine.collect_sources([source.id])
    with store.reading() as connection:
        return get_source(connection, source.id)


def podcast_moved_to(url: str) -> bytes:
    namespace = b'xmlns:i="http://www.itunes.com/dtds/podcast-1.0.dtd"'
    moved = f"<i:new-feed-url>{url}</i:new-feed-url>".encode()
    return RSS.replace(b"<rss ", b"<rss " + namespace + b" ").replace(b"<channel>", b"<channel>" + moved)


def sent_to(received: Received) -> set[str]:
    return {"authorization", "cookie", "x-key"} & set(received.headers)


@pytest.mark.parametrize("config", CREDENTIALS)
async def test_source_with_credentials_redirected_to_another_origin_stays_and_needs_attention(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock, config: dict[str, Any]
) -> None:
    with Origin() as other:
        new = other.route("/new", body=RSS)
        url = origin.route("/old", status=301, location=new)
        source = add(store, url, clock, config)
        after = await visit(store, settings, clock, source, MOVED_AFTER + 2)
        assert (after.url, after.moved_to, after.status) == (url, new, "needs_attention")
        assert (after.is_active, after.consecutive_failures) == (True, 0)
        assert len(other.requests) == MOVED_AFTER + 2
        assert not any(map(sent_to, other.requests))
        assert all(map(sent_to, origin.requests))
        told = explain_plan(Plan(after.next_fetch_at or 0.0, after.plan_reason), "en")
        assert f"it redirects to {new} for good, where its credentials are not sent" in told


async def test_source_with_credentials_redirected_within_its_origin_moves(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    new = origin.route("/new", body=RSS)
    source = add(store, origin.route("/old", status=301, location="/new"), clock, {"bearer_token": "hunter2"})
    after = await visit(store, settings, clock, source, MOVED_AFTER)
    assert (after.url, after.status) == (new, "ok")
    assert sent_to(origin.received("/new")[-1])


@pytest.mark.parametrize(
    "config", [{}, {"headers": {"Accept-Language": "de"}}, {"proxy": None}], ids=["none", "harmless", "proxy"]
)
async def test_source_without_credentials_redirected_to_another_origin_moves(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock, config: dict[str, Any]
) -> None:
    with Origin() as other:
        new = other.route("/new", body=RSS)
        source = add(store, origin.route("/old", status=308, location=new), clock, config)
        after = await visit(store, settings, clock, source, MOVED_AFTER)
        assert (after.url, after.status, after.moved_to) == (new, "ok", None)


@pytest.mark.parametrize(("config", "moves"), [({}, True), ({"bearer_token": "hunter2"}, False)])
async def test_podcast_that_states_a_new_feed_url_moves_unless_it_has_credentials(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock, config: dict[str, Any], moves: bool
) -> None:
    with Origin() as other:
        new = other.route("/new", body=RSS)
        url = origin.route("/old", body=podcast_moved_to(new))
        source = add(store, url, clock, config)
        assert (await visit(store, settings, clock, source, MOVED_AFTER - 1)).url == url
        after = await visit(store, settings, clock, source)
        assert (after.url, after.status) == ((new, "ok") if moves else (url, "needs_attention"))
        assert not other.requests  # a document names the new address; only the next visit goes there


async def test_podcast_that_states_its_own_address_as_new_feed_url_stays(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    url = origin.route("/old", body=RSS)
    origin.route("/old", body=podcast_moved_to(url))
    after = await visit(store, settings, clock, add(store, url, clock, {}), MOVED_AFTER)
    assert (after.url, after.status, after.moved_to) == (url, "ok", None)


async def test_source_that_waits_to_move_moves_once_its_credentials_are_removed(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    with Origin() as other:
        new = other.route("/new", body=RSS)
        source = add(
            store,
            origin.route("/old", status=301, location=new),
            clock,
            {"headers": {"X-Key": "hunter2", "Accept": "text/xml"}},
        )
        await visit(store, settings, clock, source, MOVED_AFTER)
        with store.writing() as connection:
            edit_source(connection, source.id, Edit(config={}), clock())
        after = await visit(store, settings, clock, source)
        assert (after.url, after.status, after.moved_to) == (new, "ok", None)


async def test_source_whose_redirect_ends_needs_no_attention_any_more(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    with Origin() as other:
        url = origin.route("/old", status=301, location=other.route("/new", body=RSS))
        source = add(store, url, clock, {"bearer_token": "hunter2"})
        assert (await visit(store, settings, clock, source, MOVED_AFTER)).status == "needs_attention"
        origin.route("/old", body=RSS)
        after = await visit(store, settings, clock, source)
        assert (after.url, after.status, after.moved_to) == (url, "ok", None)


async def test_source_refused_after_a_redirect_is_told_that_its_credentials_were_not_sent(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    with Origin() as other:
        url = origin.route("/old", status=301, location=other.route("/new", status=401))
        after = await visit(store, settings, clock, add(store, url, clock, {"bearer_token": "hunter2"}))
        assert "the source's credentials were not sent" in (after.last_error or "")


async def test_adding_a_page_with_credentials_that_names_a_feed_elsewhere_is_refused(
    store: Store, settings: Settings, origin: Origin
) -> None:
    with Origin() as other:
        feed = other.route("/feed", body=RSS)
        page = f'<html><head><link rel="alternate" type="application/rss+xml" href="{feed}"></head></html>'
        url = origin.route("/", body=page, content_type="text/html")
        async with make_fetcher(settings) as fetcher:
            context = await read_visit_context(store, settings, fetcher)
            with pytest.raises(InputError, match="to which the credentials are not sent"):
                await add_what_is_there(read_new_source(url, config={"bearer_token": "hunter2"}), context)
            with store.reading() as connection:
                assert list_sources(connection) == []
            added = await add_what_is_there(read_new_source(url), context)
        assert added.url == feed
        assert not any(map(sent_to, other.requests))

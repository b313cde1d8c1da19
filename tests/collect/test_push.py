"""Hubs that push: subscribed to, confirmed, renewed, believed only as far as they can be, and never needed."""

import asyncio
import hmac
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, select

from headwater.collect.context import read_planner
from headwater.collect.engine import Engine
from headwater.collect.hub_trust import CHECK_SECONDS, GRACE_SECONDS, MOST_MISSES, is_trusted
from headwater.collect.push import (
    ALGORITHMS,
    FIRST_WAIT_SECONDS,
    RENEW_AFTER,
    Delivery,
    Subscriber,
    confirm,
    is_signed,
    take_push,
)
from headwater.collectors.feed import hub_of
from headwater.config import Settings
from headwater.errors import FailureKind, FetchError
from headwater.fetch.client import Fetcher, make_fetcher
from headwater.fetch.message import Request, Response
from headwater.formats.feeds.parse import parse
from headwater.formats.links import read_link_header
from headwater.model import Hub as NamedHub
from headwater.model import Plan, Source, Validators
from headwater.schedule.explain import explain_plan
from headwater.store.collecting.push import (
    Subscription,
    change_subscription,
    read_subscription,
)
from headwater.store.collecting.queue import claim_sources
from headwater.store.collecting.sources import change_source, remove_source, set_schedule_enabled
from headwater.store.core.database import Store
from headwater.store.core.tables import collection_records
from headwater.web.app import create_app
from headwater.web.server import address_of, listen, serve_app
from tests.clock import FakeClock
from tests.collect.test_engine import add, collect, reread, rss, settings, titles
from tests.hub import CHALLENGE, Hub
from tests.origin import Origin

__all__ = ["settings"]  # the fixture
LEASE = 1_000.0
PUBLIC = "https://reader.example"


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as opened:
        yield opened


@pytest.fixture
def reachable(settings: Settings) -> Settings:
    """As the other tests, but the world knows where we are."""
    return replace(settings, public_url=PUBLIC)


class Pushed:
    """One source with a hub, driven step by step on its own clock."""

    def __init__(self, store: Store, settings: Settings, origin: Origin, hub: Hub, clock: FakeClock) -> None:
        self.store, self.settings, self.origin, self.hub, self.clock = store, settings, origin, hub, clock
        self.topic = origin.url("/feed")
        self.publish(1)
        self.source = add(store, self.topic, clock)

    def publish(self, *numbers: int, at: float | None = None) -> None:
        dated = rss(*numbers) if at is None else rss(*numbers, at=at)
        links = f'<link xmlns="http://www.w3.org/2005/Atom" rel="hub" href="{self.hub.url}"/>'
        self.origin.route("/feed", body=dated.replace(b"</channel>", f"{links}</channel>".encode()))

    async def visit(self) -> Source:
        await collect(self.store, self.settings, self.clock, self.source.id)
        return reread(self.store, self.source)

    async def act(self) -> int:
        async with make_fetcher(self.settings) as fetcher:
            return await Subscriber(self.store, self.settings.public_url, fetcher, self.clock).act()

    @property
    def subscription(self) -> Subscription | None:
        with self.store.reading() as connection:
            return read_subscription(connection, self.source.id)

    @property
    def sure(self) -> Subscription:
        assert self.subscription is not None
        return self.subscription

    def confirm(self, mode: str = "subscribe", topic: str | None = None) -> bool:
        with self.store.writing() as connection:
            return confirm(
                connection,
                self.sure.token,
                mode=mode,
                topic=topic or self.topic,
                lease_seconds=LEASE,
                now=self.clock(),
            )

    async def push(self, *numbers: int, body: bytes | None = None) -> bool:
        body = rss(*numbers) if body is None else body
        subscription = self.sure
        signature = "sha256=" + hmac.new(subscription.secret.encode(), body, "sha256").hexdigest()
        planner = await read_planner(self.store, self.settings)
        delivery = Delivery(subscription.token, body, "application/rss+xml", signature)
        return await take_push(delivery, self.store, planner, self.clock)

    async def subscribe(self) -> "Pushed":
        """Up to a subscription in force, and the visit that closes the gap before it."""
        self.hub.verifies = False
        await self.visit()
        await self.act()
        assert self.confirm()
        self.clock.advance(1)
        await self.visit()
        return self

    @property
    def wait(self) -> float:
        return (reread(self.store, self.source).next_fetch_at or 0.0) - self.clock()

    def is_due(self) -> bool:
        with self.store.reading() as connection:
            row = connection.exec_driver_sql("SELECT due_at FROM sources").one()
        return row[0] is not None and row[0] <= self.clock()


@pytest.fixture
def pushed(store: Store, reachable: Settings, origin: Origin, hub: Hub, clock: FakeClock) -> Pushed:
    return Pushed(store, reachable, origin, hub, clock)


@asynccontextmanager
async def serving(store: Store, settings: Settings) -> AsyncIterator[Settings]:
    """Collector and callback door, as `headwater serve` runs them."""
    listener = listen("127.0.0.1", 0)
    settings = replace(settings, public_url=address_of(listener))
    stopped = asyncio.Event()
    async with Engine(store, settings) as engine:
        answering = asyncio.create_task(serve_app(create_app(store, settings), listener, stopped))
        collecting = asyncio.create_task(engine.run())
        try:
            yield settings
        finally:
            engine.stop()
            stopped.set()
            await asyncio.gather(answering, collecting)
            listener.close()


async def until(condition: Any) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.02)


async def test_a_pushed_item_is_stored_within_a_second_and_a_forged_one_never(
    store: Store, settings: Settings, origin: Origin, hub: Hub
) -> None:
    topic = origin.url("/feed")
    origin.route("/feed", body=hub.feed(topic, 1))
    source = add(store, topic, FakeClock(time.time()))

    def visits() -> int:
        return reread(store, source).fetch_count

    async with serving(store, settings):
        await asyncio.to_thread(hub.wait_until_verified, 1)
        assert hub.verified == [(200, CHALLENGE)]
        await until(lambda: visits() == 2)  # the second closes the gap before the subscription
        planned = reread(store, source)
        assert planned.plan_reason["decided_by"] == "pushed"
        assert (planned.next_fetch_at or 0) - time.time() > 0.9 * CHECK_SECONDS
        assert "pushed by hub; safety check daily" in explain_plan(
            Plan(planned.next_fetch_at or 0, planned.plan_reason), "en"
        )

        began = time.monotonic()
        assert await asyncio.to_thread(hub.push, hub.feed(topic, 2, 1)) == 200
        assert "Post 2" in titles(store)
        assert time.monotonic() - began < 1.0

        assert await asyncio.to_thread(hub.push, hub.feed(topic, 3), secret="guessed") == 404
        assert await asyncio.to_thread(hub.push, hub.feed(topic, 3), method="md5") == 404
        assert sorted(titles(store)) == ["Post 1", "Post 2"]
    assert visits() == 2, "a push is not a visit to the source"
    with store.reading() as connection:
        found = read_subscription(connection, source.id)
        assert found is not None
        assert (found.pushes, found.forged) == (1, 2)
        records = connection.execute(select(collection_records).order_by(collection_records.c.id)).all()
    assert [(row.status, row.items_new, row.overflow) for row in records] == [
        ("new", 1, False),
        ("unchanged", 0, False),
        ("new", 1, False),
    ]


async def test_a_push_says_nothing_of_the_sources_own_address(pushed: Pushed) -> None:
    before = await (await pushed.subscribe()).visit()
    assert await pushed.push(2, 3)
    after = reread(pushed.store, pushed.source)
    for name in ("next_fetch_at", "plan_reason", "validators", "fetch_count", "last_fetched_at", "status"):
        assert getattr(after, name) == getattr(before, name), name
    assert sorted(titles(pushed.store)) == ["Post 1", "Post 2", "Post 3"]


async def test_what_is_pushed_twice_or_polled_as_well_is_stored_once(pushed: Pushed) -> None:
    await pushed.subscribe()
    for _ in range(2):
        assert await pushed.push(2)
    pushed.publish(1, 2)
    await pushed.visit()
    assert sorted(titles(pushed.store)) == ["Post 1", "Post 2"]
    assert pushed.sure.missed == 0


async def test_a_push_that_comes_again_or_late_does_not_undo_what_came_after_it(pushed: Pushed) -> None:
    first, second = rss(2), rss(2, title="Post {}, corrected")
    await pushed.subscribe()
    assert await pushed.push(body=first)
    assert await pushed.push(body=second)
    assert not pushed.is_due()
    assert await pushed.push(body=first)
    assert sorted(titles(pushed.store)) == ["Post 1", "Post 2, corrected"]
    assert pushed.is_due(), "the publisher may have taken it back, which a visit sees"


async def test_a_push_with_an_older_update_is_outdated(pushed: Pushed) -> None:
    def dated(text: str, day: int) -> bytes:
        return (
            "<feed xmlns='http://www.w3.org/2005/Atom'><title>One</title><entry><id>urn:x:1</id>"
            f"<title>{text}</title><updated>2020-01-{day:02}T00:00:00Z</updated></entry></feed>"
        ).encode()

    await pushed.subscribe()
    for text, day in (("second", 2), ("first", 1), ("third", 3), ("second", 4)):
        assert await pushed.push(body=dated(text, day))
    assert sorted(titles(pushed.store)) == ["Post 1", "second"]  # taken back on the fourth day


async def test_a_push_during_a_visit_is_neither_lost_nor_doubled(pushed: Pushed) -> None:
    await pushed.subscribe()
    pushed.publish(1, 2)
    with pushed.store.writing() as connection:  # a visit is under way, and will not end soon
        claim_sources(connection, [pushed.source.id], now=pushed.clock(), lease_until=pushed.clock() + LEASE)
    assert await pushed.push(2)
    assert titles(pushed.store) == ["Post 1"]
    pushed.clock.advance(LEASE + 1)  # that visit died; the line remembers what the push said
    assert pushed.is_due()
    await collect(pushed.store, pushed.settings, pushed.clock)
    assert sorted(titles(pushed.store)) == ["Post 1", "Post 2"]


async def test_pushes_and_visits_at_the_same_time(pushed: Pushed) -> None:
    await pushed.subscribe()
    pushed.publish(1, 2, 3, 4)
    await asyncio.gather(*(pushed.push(n) for n in (2, 3, 4)), pushed.visit(), pushed.push(2, 3, 4))
    await collect(pushed.store, pushed.settings, pushed.clock)
    assert sorted(titles(pushed.store)) == ["Post 1", "Post 2", "Post 3", "Post 4"]


async def test_push_that_is_not_a_feed_causes_a_visit(pushed: Pushed) -> None:
    await pushed.subscribe()
    assert not pushed.is_due()
    assert await pushed.push(body=b"something is new")
    assert pushed.is_due()


async def test_a_push_does_not_take_the_place_of_a_visit_that_was_asked_for(pushed: Pushed) -> None:
    pushed.hub.verifies = False
    await pushed.visit()
    await pushed.act()
    assert pushed.confirm()
    assert pushed.is_due(), "what came out before the subscription began is not pushed"
    assert await pushed.push(2)
    assert pushed.is_due()


async def test_it_is_renewed_before_the_lease_ends(pushed: Pushed) -> None:
    await pushed.subscribe()
    pushed.clock.advance(RENEW_AFTER * LEASE - 2)
    assert await pushed.act() == 0
    pushed.clock.advance(2)
    assert await pushed.act() == 1
    assert [each["hub.mode"] for each in pushed.hub.asked] == ["subscribe", "subscribe"]
    assert pushed.hub.asked[0] == pushed.hub.asked[1], "the same callback and secret"
    assert pushed.confirm()
    assert pushed.sure.lease_ends_at == pushed.clock() + LEASE
    assert not pushed.is_due(), "nothing was interrupted"


async def test_a_lease_that_runs_out_brings_polling_back(pushed: Pushed) -> None:
    await pushed.subscribe()
    assert pushed.wait == CHECK_SECONDS
    pushed.clock.advance(RENEW_AFTER * LEASE)
    await pushed.act()  # the hub takes the request and never confirms it
    assert not pushed.is_due()
    pushed.clock.advance(LEASE)
    await pushed.act()
    assert pushed.is_due()
    await pushed.visit()
    assert pushed.wait == 4 * 3600
    assert pushed.sure.state == "pending"


@pytest.mark.parametrize("status", [500, 404])
async def test_a_hub_that_fails_brings_polling_back(pushed: Pushed, status: int) -> None:
    await pushed.subscribe()
    pushed.clock.advance(RENEW_AFTER * LEASE)
    pushed.hub.status = status
    await pushed.act()
    assert pushed.is_due()
    await pushed.visit()
    assert pushed.wait == 4 * 3600
    assert f"the hub answered {status}" in (pushed.sure.last_error or "")
    pushed.clock.advance(1)
    await pushed.push(2)
    await pushed.visit()
    assert pushed.wait == CHECK_SECONDS, "it pushes all the same"


async def test_a_check_that_finds_what_was_not_pushed_brings_polling_back(pushed: Pushed) -> None:
    await pushed.subscribe()
    pushed.hub.lease_seconds = 10 * 86_400
    number = 10
    for misses in range(1, MOST_MISSES + 1):
        with pushed.store.writing() as connection:
            connection.exec_driver_sql(f"UPDATE push_subscriptions SET lease_ends_at = {pushed.clock() * 2}")
        published_at = pushed.clock() + 60
        pushed.clock.advance(CHECK_SECONDS)
        number += 1
        pushed.publish(1, number, at=published_at - number)
        await pushed.visit()
        assert (pushed.sure.missed, pushed.wait) == (misses, 4 * 3600)
        pushed.clock.advance(1)
        number += 1
        await pushed.push(number)
        await pushed.visit()
        expected = CHECK_SECONDS if misses < MOST_MISSES else 4 * 3600
        assert pushed.wait == expected, "the next push restores trust, but not for ever"


async def test_what_is_too_new_to_be_pushed_is_not_held_against_the_hub(pushed: Pushed) -> None:
    await pushed.subscribe()
    pushed.clock.advance(GRACE_SECONDS)
    pushed.publish(1, 2, at=pushed.clock() - GRACE_SECONDS / 2)
    await pushed.visit()
    assert pushed.sure.missed == 0
    assert pushed.wait == CHECK_SECONDS


def pause_source(connection: Connection, source_id: int, now: float) -> None:
    set_schedule_enabled(connection, source_id, False, now)


@pytest.mark.parametrize("leave", [remove_source, pause_source])
async def test_a_source_that_is_removed_or_paused_is_unsubscribed(pushed: Pushed, leave: Any) -> None:
    await pushed.subscribe()
    with pushed.store.writing() as connection:
        leave(connection, pushed.source.id, pushed.clock())
    assert not await pushed.push(2), "nothing is taken for it from now on"
    await pushed.act()
    assert pushed.hub.asked[-1]["hub.mode"] == "unsubscribe"
    assert "hub.secret" not in pushed.hub.asked[-1]
    assert not pushed.confirm(), "it is not meant any more"
    assert pushed.confirm("unsubscribe")
    assert pushed.subscription is None
    assert titles(pushed.store) == ["Post 1"]


@pytest.mark.parametrize("is_unsubscribed", [True, False])
async def test_resumed_source_is_visited_at_once_and_subscribed_again(
    pushed: Pushed, is_unsubscribed: bool
) -> None:
    """Though its document is the same: what it says of its hub is read again."""
    await pushed.subscribe()
    assert pushed.wait == CHECK_SECONDS
    with pushed.store.writing() as connection:
        pause_source(connection, pushed.source.id, pushed.clock())
    if is_unsubscribed:
        await pushed.act()
        assert pushed.confirm("unsubscribe")
    pushed.clock.advance(60)
    with pushed.store.writing() as connection:
        set_schedule_enabled(connection, pushed.source.id, True, pushed.clock())
    assert pushed.is_due()
    await pushed.visit()
    await pushed.act()
    assert pushed.hub.asked[-1]["hub.mode"] == "subscribe"
    assert pushed.confirm()


async def test_edited_source_is_visited_at_once_when_it_was_pushed(pushed: Pushed) -> None:
    await pushed.subscribe()
    with pushed.store.writing() as connection:
        change_source(connection, pushed.source.id, pushed.clock(), folder="News")
    assert not pushed.is_due(), "a folder has nothing to do with it"
    with pushed.store.writing() as connection:
        change_source(connection, pushed.source.id, pushed.clock(), policy="interval")
    assert pushed.is_due()


async def test_a_hub_that_never_confirms_the_end_is_forgotten(pushed: Pushed) -> None:
    await pushed.subscribe()
    with pushed.store.writing() as connection:
        remove_source(connection, pushed.source.id, pushed.clock())
    await pushed.act()
    pushed.clock.advance(FIRST_WAIT_SECONDS)
    await pushed.act()
    assert pushed.subscription is None


async def test_nothing_is_confirmed_that_was_not_asked_for(pushed: Pushed) -> None:
    pushed.hub.verifies = False
    await pushed.visit()
    assert not pushed.confirm(), "not asked for yet"
    await pushed.act()
    assert not pushed.confirm(topic="http://elsewhere.example/feed")
    assert not pushed.confirm("unsubscribe")
    assert not pushed.confirm("nonsense")
    assert pushed.confirm()


async def test_a_refusal_leaves_the_source_to_polling(pushed: Pushed) -> None:
    await pushed.subscribe()
    assert pushed.confirm("denied")
    assert pushed.sure.state == "refused"
    assert pushed.is_due()
    await pushed.visit()
    assert pushed.wait == 4 * 3600
    assert not await pushed.push(2)


async def test_a_hub_that_does_not_answer_is_asked_less_and_less(pushed: Pushed) -> None:
    pushed.hub.status = 503
    await pushed.visit()
    waits = []
    for _ in range(4):
        assert await pushed.act() == 1
        waits.append((pushed.sure.act_at or 0) - pushed.clock())
        pushed.clock.advance(waits[-1])
    assert waits == [FIRST_WAIT_SECONDS * 2**n for n in range(4)]
    await pushed.visit()
    assert pushed.wait == 4 * 3600


async def test_a_feed_that_changes_its_hub_or_has_none_any_more(pushed: Pushed, origin: Origin) -> None:
    await pushed.subscribe()
    first = pushed.sure
    with Hub(verifies=False) as other:
        origin.route("/feed", body=other.feed(pushed.topic, 1, 2))
        await pushed.visit()
        moved = pushed.sure
        assert (moved.hub, moved.state) == (other.url, "wanted")
        assert (moved.token, moved.secret) != (first.token, first.secret)
        await pushed.act()
        assert other.asked[0]["hub.topic"] == pushed.topic
    origin.route("/feed", body=rss(1, 2, 3))
    await pushed.visit()
    assert pushed.sure.state == "leaving"


async def test_the_guard_stands_before_hubs_too(pushed: Pushed) -> None:
    await pushed.visit()
    pushed.settings = replace(pushed.settings, allow_hosts=())
    await pushed.act()
    assert pushed.hub.asked == []
    assert "not a public address" in (pushed.sure.last_error or "")


async def test_secret_for_a_hub_named_with_http_is_sent_over_https_only(pushed: Pushed) -> None:
    await pushed.visit()
    sent: list[Request] = []

    class Recorder(Fetcher):
        async def post(self, request: Request) -> Response:
            sent.append(request)
            raise FetchError(FailureKind.CONNECT, "no connection")

    for hub in ("http://hub.example/", "http://127.0.0.1:4/hub"):
        with pushed.store.writing() as connection:
            change_subscription(connection, pushed.source.id, hub=hub, act_at=pushed.clock())
        recorder = Recorder(user_agent="test", allow=["127.0.0.1"])
        await Subscriber(pushed.store, PUBLIC, recorder, pushed.clock).act()
    assert [request.url for request in sent] == ["https://hub.example/", "http://127.0.0.1:4/hub"]
    assert all(b"hub.secret=" in (request.body or b"") for request in sent)


async def test_without_a_public_address_nothing_is_subscribed_and_polling_comes_back(pushed: Pushed) -> None:
    await pushed.subscribe()
    hidden = replace(pushed.settings, public_url=None)
    async with make_fetcher(hidden) as fetcher:
        await Subscriber(pushed.store, None, fetcher, pushed.clock).run()
    assert pushed.is_due()
    pushed.settings = hidden
    await pushed.visit()
    assert pushed.wait == 4 * 3600
    assert pushed.sure.state == "wanted"


def test_trust_ends_with_the_lease() -> None:
    one = Subscription(
        *(1, "hub", "topic", "token", "secret", "active", None, 0, 1.0, 100.0, None, None, 0, 0, 0, None, 0.0)
    )
    assert is_trusted(one, 99.0)
    assert not is_trusted(one, 100.0)
    assert not is_trusted(None, 0.0)
    assert not is_trusted(replace(one, state="pending"), 0.0)
    assert "secret" not in repr(one)
    assert "token" not in repr(one)


@given(st.binary(max_size=200), st.text(min_size=1, max_size=40), st.sampled_from(sorted(ALGORITHMS)))
def test_only_the_right_signature_is_right(body: bytes, secret: str, method: str) -> None:
    digest = hmac.new(secret.encode(), body, method).hexdigest()
    assert is_signed(body, secret, f"{method}={digest}")
    assert is_signed(body, secret, f"{method.upper()}={digest.upper()}")
    for wrong in (None, "", digest, f"{method}=", f"{method}={digest[:-1]}", f"md5={digest}", f"{method}=é"):
        assert not is_signed(body, secret, wrong)
    assert not is_signed(body + b"x", secret, f"{method}={digest}")
    assert not is_signed(body, secret + "x", f"{method}={digest}")


@pytest.mark.parametrize(
    ("value", "links"),
    [
        ('<https://h.example/>; rel="hub"', [("hub", "https://h.example/")]),
        (
            '<https://h.example/>; rel=hub, </feed>; rel="self"',
            [("hub", "https://h.example/"), ("self", "https://one.example/feed")],
        ),
        ('<https://a.example/?x=1,2>; title="a, b"; rel="self next"', "self next https://a.example/?x=1,2"),
        ("<https://h.example/>", []),
        ("nonsense; rel=hub", []),
    ],
)
def test_links_in_headers(value: str, links: Any) -> None:
    if isinstance(links, str):
        *names, url = links.split()
        links = [(name, url) for name in names]
    assert read_link_header(value, "https://one.example/x") == links


def test_headers_name_the_hub_before_the_feed_does() -> None:
    feed = parse(Hub.feed(_AnyHub(), "https://one.example/self", 1))  # type: ignore[arg-type]
    answer = Response("https://one.example/feed", 200, {}, b"", Validators(), False)
    assert hub_of(answer, feed) == NamedHub("https://feed-hub.example/", "https://one.example/self")
    answer.headers = {"Link": '<http://a.example/>; rel="hub", <https://b.example/>; rel="hub"'}
    assert hub_of(answer, feed) == NamedHub("https://b.example/", "https://one.example/self")
    answer.headers = {"link": '<javascript:x>; rel="hub", <https://one.example/t>; rel=self'}
    assert hub_of(answer, replace(feed, hub_links=())) is None


class _AnyHub:
    url = "https://feed-hub.example/"

"""WebSub: subscribing to the hubs that sources name, and taking what they push.

    a visit finds a hub → wanted → asked for → the hub asks back whether we mean it → active, renewed in time
    a hub pushes → its signature is checked → the items are treated like a visit's: decide, settle, one transaction

A push is answered only when what it brought is stored, or when a visit that will find it is first in line; so it is
neither lost nor, as both ways hold the source's claim, stored twice. When push stops, the source is visited at once and
then as often as its plan says.
"""

import asyncio
import hashlib
import hmac
import logging
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlencode

from sqlalchemy import Connection

from headwater.collect.delivery import PATIENCE_SECONDS, Delivered, prepare_delivery, store_delivery
from headwater.collect.planning import Planner
from headwater.collectors.base import FetchResult
from headwater.collectors.feed import parse_feed, read_items
from headwater.errors import FetchError, ParseError, StoreError
from headwater.fetch.client import Fetcher
from headwater.fetch.message import Request
from headwater.store.collecting.push import (
    Subscription,
    change_subscription,
    count_forgery,
    count_push,
    delete_subscription,
    due_subscriptions,
    find_subscription,
    is_any_due,
    lock_subscription,
    suspend_subscriptions,
)
from headwater.store.collecting.sources import request_refresh
from headwater.store.core.database import Store
from headwater.threads import read_aside

log = logging.getLogger(__name__)

BATCH = 20
MOST_PUSHED_ITEMS = 500  # of one push; a visit sees the rest
LOOK_SECONDS = 1.0
LEASE_SECONDS = 10 * 86_400  # what we ask for; the hub decides
LONGEST_LEASE_SECONDS = 90 * 86_400.0
SHORTEST_LEASE_SECONDS = 60.0
RENEW_AFTER = 0.75  # of the lease
FIRST_WAIT_SECONDS = 600.0  # for the hub's confirmation, doubled each time it does not come
LONGEST_WAIT_SECONDS = 86_400.0
REFUSED_SECONDS = 7 * 86_400.0  # until a hub that has refused is asked again
ALGORITHMS = {
    "sha1": hashlib.sha1,
    "sha256": hashlib.sha256,
    "sha384": hashlib.sha384,
    "sha512": hashlib.sha512,
}


def is_signed(body: bytes, secret: str, header: str | None) -> bool:
    """Whether `header` (X-Hub-Signature) is the signature that only the hub could have made of `body`."""
    method, _, given = (header or "").strip().partition("=")
    algorithm = ALGORITHMS.get(method.lower())
    if algorithm is None:
        return False
    expected = hmac.new(secret.encode(), body, algorithm).hexdigest()
    return hmac.compare_digest(expected.encode(), given.strip().lower().encode("utf-8", "replace"))


class Subscriber:
    """Keeps subscriptions as they should be; the engine runs it beside the visits."""

    def __init__(
        self, store: Store, public_url: str | None, fetcher: Fetcher, clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._public_url = public_url
        self._fetcher = fetcher
        self._clock = clock

    async def run(self) -> None:
        """Do what is due, again and again, until cancelled; without a public address, once."""
        while True:
            try:
                if self._public_url is None:
                    await self._store.write(_suspend, self._clock())
                    return
                while await self.act():
                    pass
            except StoreError as error:
                log.warning("subscriptions: %s", error)
            except Exception:
                log.exception("subscriptions: unexpected error")
            await asyncio.sleep(LOOK_SECONDS)

    async def act(self) -> int:
        """Do what is due about a batch of subscriptions; returns how many there were."""
        if not await self._store.read(is_any_due, self._clock()):
            return 0
        due = await self._store.write(_take_due, self._clock())
        await asyncio.gather(*(self._ask(subscription, mode) for subscription, mode in due if mode))
        return len(due)

    async def _ask(self, subscription: Subscription, mode: str) -> None:
        """Send a request to the hub; whether it was granted, the hub tells by calling back."""
        fields = {
            "hub.mode": mode,
            "hub.topic": subscription.topic,
            "hub.callback": callback_url(self._public_url or "", subscription.token),
        }
        if mode == "subscribe":
            fields |= {"hub.secret": subscription.secret, "hub.lease_seconds": str(LEASE_SECONDS)}
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        problem: str | None = None
        try:
            hub = self._fetcher.secure_url(subscription.hub)
            answer = await self._fetcher.post(
                Request(hub, body=urlencode(fields).encode(), headers=headers, max_bytes=100_000)
            )
            if not 200 <= answer.status < 300:
                problem = f"the hub answered {answer.status}"
        except FetchError as error:
            problem = error.render("en")
        if problem is not None:
            log.warning("source %s: %s at %s: %s", subscription.source_id, mode, subscription.hub, problem)
            await self._store.write(_note_failure, subscription, problem, self._clock())


def callback_url(public_url: str, token: str) -> str:
    return f"{public_url.rstrip('/')}/push/{token}"


def _suspend(connection: Connection, now: float) -> None:
    if pushed := suspend_subscriptions(connection, now):
        request_refresh(connection, pushed, now)


def _take_due(connection: Connection, now: float) -> list[tuple[Subscription, str | None]]:
    """What to ask of which hub now. Each becomes due again if the hub never confirms or this process dies."""
    return [(each, _begin(connection, each, now)) for each in due_subscriptions(connection, BATCH, now)]


def _begin(connection: Connection, subscription: Subscription, now: float) -> str | None:
    source_id, state, attempts = subscription.source_id, subscription.state, subscription.attempts
    wait = min(FIRST_WAIT_SECONDS * 2**attempts, LONGEST_WAIT_SECONDS)
    if state == "leaving" or not subscription.enabled:
        if (state == "leaving" and attempts > 0) or subscription.verified_at is None:
            # It was asked to stop, or never asked to begin. A hub that goes on meets a closed door.
            delete_subscription(connection, source_id)
            return None
        change_subscription(connection, source_id, state="leaving", act_at=now + wait, attempts=attempts + 1)
        return "unsubscribe"
    ends_at = subscription.lease_ends_at or 0.0
    if state == "active" and ends_at <= now:
        log.warning("source %s: its hub let the lease expire; it is polled again", source_id)
        request_refresh(connection, [source_id], now)
    next_state = "active" if state == "active" and ends_at > now else "pending"
    act_at = min(now + wait, ends_at) if next_state == "active" else now + wait
    change_subscription(connection, source_id, state=next_state, act_at=act_at, attempts=attempts + 1)
    return "subscribe"


def _note_failure(connection: Connection, subscription: Subscription, problem: str, now: float) -> None:
    current = lock_subscription(connection, subscription.token)
    if current is None:
        return
    change_subscription(connection, current.source_id, last_error=problem)
    if current.state == "active" and current.lease_ends_at == subscription.lease_ends_at:
        # A hub that cannot be reached is hardly one that pushes: look for ourselves until it does.
        change_subscription(connection, current.source_id, missed_at=now)
        request_refresh(connection, [current.source_id], now)


def confirm(
    connection: Connection, token: str, *, mode: str, topic: str, lease_seconds: float | None, now: float
) -> bool:
    """The hub asks whether we mean it (or says no): whether to say yes. What it tells is kept."""
    subscription = lock_subscription(connection, token)
    if subscription is None or topic != subscription.topic:
        return False
    source_id = subscription.source_id
    if mode == "denied":
        change_subscription(
            connection, source_id, state="refused", act_at=now + REFUSED_SECONDS, last_error="the hub refused"
        )
        request_refresh(connection, [source_id], now)
        return True
    if mode == "unsubscribe":
        if subscription.state != "leaving":
            return False
        delete_subscription(connection, source_id)
        return True
    if mode != "subscribe" or subscription.state not in ("pending", "active") or not subscription.enabled:
        return False
    lease = LEASE_SECONDS if lease_seconds is None else lease_seconds
    lease = max(SHORTEST_LEASE_SECONDS, min(lease, LONGEST_LEASE_SECONDS))
    change_subscription(
        connection,
        source_id,
        state="active",
        act_at=now + RENEW_AFTER * lease,
        lease_ends_at=now + lease,
        attempts=0,
        missed=0,
        last_error=None,
    )
    if subscription.state == "pending":
        change_subscription(connection, source_id, verified_at=now, missed_at=None)
        # The hub does not push what came out between the last visit and this moment.
        request_refresh(connection, [source_id], now)
    return True


@dataclass(frozen=True, slots=True)
class Delivery:
    token: str
    body: bytes
    content_type: str | None
    signature: str | None


async def take_push(delivery: Delivery, store: Store, planner: Planner, clock: Callable[[], float]) -> bool:
    """Store what a hub delivers; False when it is not for us. It is safe with us once this has returned."""
    subscription = await store.read(find_subscription, delivery.token)
    if subscription is None or subscription.state != "active" or not subscription.enabled:
        return False
    if not is_signed(delivery.body, subscription.secret, delivery.signature):
        log.warning("source %s: a push with a wrong signature is refused", subscription.source_id)
        await store.write(count_forgery, subscription.source_id)
        return False
    try:
        feed = await parse_feed(delivery.body, subscription.topic, delivery.content_type)
    except ParseError:
        # No more than a sign that there is something: a visit will see what.
        await store.write(_leave_to_visit, subscription.source_id, clock())
        return True
    result = FetchResult(
        items=await read_items(feed, len(delivery.body)),
        requests=0,
        bytes_received=len(delivery.body),
    )
    size = len(delivery.body)
    delivered = await read_aside(size, prepare_delivery, result, MOST_PUSHED_ITEMS, clock())
    waited = 0.0
    while not await store.write(_store_push, delivery.token, delivered, planner, clock()):
        if waited >= PATIENCE_SECONDS:
            await store.write(_leave_to_visit, subscription.source_id, clock())
            break
        await asyncio.sleep(0.05)
        waited += 0.05
    return True


def _leave_to_visit(connection: Connection, source_id: int, now: float) -> None:
    count_push(connection, source_id, now)
    request_refresh(connection, [source_id], now)


def _store_push(
    connection: Connection, token: str, delivered: Delivered, planner: Planner, now: float
) -> bool:
    """False while a visit holds the claim."""
    subscription = find_subscription(connection, token)
    if subscription is None:
        return True  # given up meanwhile
    left_out = store_delivery(connection, subscription.source_id, delivered, planner, now)
    if left_out is None:
        return False
    count_push(connection, subscription.source_id, now)
    if left_out:
        request_refresh(connection, [subscription.source_id], now)
    return True

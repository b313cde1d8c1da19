"""What being pushed changes about visits: while a hub can be trusted, a daily check is enough. Pure, but for tokens.

A subscription is trusted while its lease runs and nothing shows that the hub keeps things back. What a visit finds
that should have been pushed ends the trust; the next push restores it, but not more than MOST_MISSES times in one
lease.
"""

import secrets
from dataclasses import replace

from headwater.collectors.base import FetchResult
from headwater.model import Hub
from headwater.store.collecting.push import FoundHub, LostHub, MissedItems, Subscription, SubscriptionChange
from headwater.store.collecting.queue import Settlement

CHECK_SECONDS = 86_400.0
GRACE_SECONDS = 600.0  # a hub may take its time: what is younger than this may still be on its way
MOST_MISSES = 3


def is_trusted(subscription: Subscription | None, now: float) -> bool:
    """Whether the hub can be relied on to push what the source publishes."""
    if subscription is None or subscription.state != "active" or (subscription.lease_ends_at or 0.0) <= now:
        return False
    if subscription.missed_at is None:
        return True
    return subscription.missed < MOST_MISSES and (subscription.last_pushed_at or 0.0) > subscription.missed_at


def apply_push(
    settlement: Settlement, result: FetchResult, subscription: Subscription | None, now: float
) -> Settlement:
    """The settlement of a visit that worked, with what there is to say of the source's subscription."""
    change = _find_change(settlement, result, subscription)
    settlement = replace(settlement, push=change)
    if change is not None or not is_trusted(subscription, now):
        return settlement
    after = settlement.after
    next_at = max(after.next_fetch_at or 0.0, now + CHECK_SECONDS)
    reason = {**after.plan_reason, "decided_by": "pushed", "wait": next_at - now}
    stats = replace(after.stats, next_due_at=int(next_at)) if after.stats else None
    return replace(settlement, after=replace(after, next_fetch_at=next_at, plan_reason=reason, stats=stats))


def _find_change(
    settlement: Settlement, result: FetchResult, subscription: Subscription | None
) -> SubscriptionChange | None:
    if not result.unchanged and (found := _compare_hub(result.hub, subscription)):
        return found
    if subscription is not None and _has_missed(settlement, subscription):
        return MissedItems()
    return None


def _compare_hub(hub: Hub | None, subscription: Subscription | None) -> SubscriptionChange | None:
    if hub is None:
        return LostHub() if subscription is not None and subscription.state != "leaving" else None
    known = subscription is not None and (subscription.hub, subscription.topic) == (hub.url, hub.topic)
    if known and subscription is not None and subscription.state != "leaving":
        return None
    return FoundHub(hub.url, hub.topic, secrets.token_urlsafe(32), secrets.token_hex(32))


def _has_missed(settlement: Settlement, subscription: Subscription) -> bool:
    """Whether something new came out since the subscription began that was not pushed, though there was time."""
    since, now = subscription.verified_at, settlement.visit.finished_at
    if subscription.state != "active" or since is None:
        return False
    # Of what has no date, only that it came after the visit before is known.
    checked_before = (settlement.before.last_fetched_at or 0.0) > since
    return any(
        checked_before if change.date_invented else since < change.item_at < now - GRACE_SECONDS
        for change in settlement.changes
        if change.kind == "new"
    )

"""A fleet that lives in a real database: the real policy, steering and schema, with made-up publishers and clock."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from headwater.collect.steering import steer_price
from headwater.model import Item, Observation, Source, Visit
from headwater.schedule.adaptive import AdaptivePolicy
from headwater.schedule.compose import Limits, plan_next
from headwater.schedule.interval import IntervalPolicy
from headwater.schedule.policy import Policy
from headwater.schedule.price import Goal
from headwater.store.collecting.queue import Settlement, claim_due, settle_batch
from headwater.store.collecting.sources import add_source, change_source
from headwater.store.core.database import Store
from headwater.store.reading.items import ItemChange

HOUR = 3600.0
LIMITS = Limits()
SIX_A_DAY = Goal(6.0)


@dataclass
class Publisher:
    """When it publishes, and when it is added. `pinned`: visited at this fixed interval, in seconds."""

    times: Sequence[float]
    joins: float
    pinned: float | None = None
    seen: int = 0
    source_id: int = 0


@dataclass
class Day:
    visits: dict[int, int] = field(default_factory=dict)  # by source
    delays: list[float] = field(default_factory=list)
    price: float = 0.0


def run_fleet(
    store: Store,
    publishers: Sequence[Publisher],
    begin: float,
    days: int,
    goal: Goal = SIX_A_DAY,
) -> list[Day]:
    """Let the fleet run, steered every hour. Returns what each day came to."""
    rng = Random(3)
    history = [Day() for _ in range(days)]
    by_source: dict[int, Publisher] = {}
    for hour in range(days * 24):
        now = begin + hour * HOUR
        day = history[hour // 24]
        with store.writing() as connection:
            for number, publisher in enumerate(publishers):
                if publisher.joins <= now and not publisher.source_id:
                    address = f"https://p{number}.example/"
                    source = add_source(connection, name=str(number), type="rss.feed", url=address, now=now)
                    if publisher.pinned is not None:
                        source = change_source(connection, source.id, now=now, policy="interval")
                    publisher.source_id = source.id
                    by_source[source.id] = publisher
            price = steer_price(connection, goal, LIMITS, now)
            day.price = price.seconds
            while due := claim_due(connection, 1000, now=now, lease_until=now + HOUR, due_by=now + HOUR - 1):
                visits = [
                    _visit(source, by_source[source.id], price.seconds, now, rng, day) for source in due
                ]
                settle_batch(connection, visits)
    return history


def _visit(
    source: Source, publisher: Publisher, price: float, now: float, rng: Random, day: Day
) -> Settlement:
    at = max(source.next_fetch_at or now, now)
    first = source.last_fetched_at is None
    seen = bisect_right(publisher.times, at)
    new = publisher.times[max(publisher.seen, seen - 20) : seen]
    publisher.seen = seen
    day.visits[source.id] = day.visits.get(source.id, 0) + 1
    if not first and publisher.pinned is None:
        day.delays += [at - time for time in new]
    policy: Policy = AdaptivePolicy(price) if publisher.pinned is None else IntervalPolicy(publisher.pinned)
    visit = Observation(at, "new" if new else "unchanged", tuple(new), len(new), first=first)
    state, plan = plan_next(policy, source.policy_state, visit, None, LIMITS, at, rng)
    after = replace(
        source,
        next_fetch_at=plan.next_at,
        plan_reason=plan.reason,
        policy_state=state,
        last_fetched_at=at,
        fetch_count=source.fetch_count + 1,
    )
    changes = [
        ItemChange("new", Item(str(time), published_at=time), key(time), key(time), (), b"h", time)
        for time in new
    ]
    return Settlement(
        source, after, Visit(source.id, at, at, visit.outcome, len(new), len(new)), tuple(changes)
    )


def key(time: float) -> bytes:
    return str(time).encode()


def mean_of(days: Sequence[Day]) -> float:
    delays = [delay for day in days for delay in day.delays]
    return sum(delays) / len(delays)


def share_within(days: Sequence[Day], seconds: float) -> float:
    delays = [delay for day in days for delay in day.delays]
    return sum(delay <= seconds for delay in delays) / len(delays)

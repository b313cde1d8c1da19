"""Steering the fleet's price of a visit, so that all workers together keep to the budget.

The price is one row in the settings table. Every worker reads it; whoever finds it an hour old steers it, in one
transaction under the row's lock.
"""

from dataclasses import asdict

from sqlalchemy import Connection, func, select

from headwater.schedule.price import STEER_EVERY_SECONDS, Price, begin_price, steer, steer_to_delay
from headwater.store.bulk import is_sqlite
from headwater.store.settings import get_setting, set_setting
from headwater.store.tables import collection_records, items, settings, sources

PRICE_KEY = "price"


def read_price(connection: Connection) -> Price | None:
    """The price in force; None before the first one."""
    stored = get_setting(connection, PRICE_KEY)
    try:
        return None if stored is None else Price(**{name: float(value) for name, value in stored.items()})
    except (TypeError, ValueError, AttributeError):
        return None  # somebody's slip in the table: begin anew


def steer_price(
    connection: Connection, *, visits_per_day: float, target_seconds: float | None, now: float
) -> Price:
    """Bring the price up to date, if it is time to, and answer it."""
    if not is_sqlite(connection):
        connection.execute(select(settings).where(settings.c.key == PRICE_KEY).with_for_update())
    price = read_price(connection)
    if price is not None and abs(now - price.at) < STEER_EVERY_SECONDS:
        return price  # another worker was faster
    if price is None or price.at > now:  # of a clock that was ahead
        price = begin_price(visits_per_day, now)
    elif target_seconds is not None:
        price = steer_to_delay(price, _mean_delay(connection, price.at), target_seconds, now)
    else:
        visits, fleet = _count(connection, price.at)
        price = steer(price, visits, fleet, visits_per_day, now)
    set_setting(connection, PRICE_KEY, asdict(price), now)
    return price


def _count(connection: Connection, since: float) -> tuple[int, int]:
    """Visits made since then, and the sources there are to visit."""
    visits = select(func.count()).where(
        collection_records.c.started_at > since, collection_records.c.status != "skipped"
    )
    fleet = select(func.count()).where(~sources.c.is_deleted, sources.c.schedule_enabled, sources.c.is_active)
    return connection.execute(visits).scalar_one(), connection.execute(fleet).scalar_one()


def _mean_delay(connection: Connection, since: float) -> float:
    """How long after their publication the items of the last while were found; 0 when there were none."""
    delay = select(func.avg(items.c.first_seen_at - items.c.published_at)).where(
        items.c.item_at > since, items.c.published_at.is_not(None), ~items.c.date_invented
    )
    return float(connection.execute(delay).scalar_one() or 0.0)

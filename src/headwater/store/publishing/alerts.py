"""Alerts: which problems hold, since when, and which of them were told. What finds them is in `problems`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from sqlalchemy import Connection, Row, delete, select, text, update

from headwater.store.core.bulk import insert_rows, storable, update_rows
from headwater.store.core.settings import get_setting, set_setting
from headwater.store.core.tables import OPEN_ALERT, UNTOLD_ALERT, alerts
from headwater.store.publishing.outbox import NewDelivery, put_in_outbox
from headwater.store.publishing.targets import refuse_unknown_targets

RULES_KEY = "alerts.rules"
TOLD_KEY = "alerts.told_at"
QUIET_SECONDS = 600.0  # for which a problem must be gone before it is over: one that flickers is one problem
MOST_TOLD = 1_000  # in one message


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that needs a person. `data` fills the sentence of its kind."""

    kind: str
    subject: str = ""
    data: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Alert:
    """A problem with its history."""

    id: int
    kind: str
    subject: str
    data: dict[str, Any] = field(hash=False)
    since_at: float
    seen_at: float
    told_at: float | None
    ended_at: float | None
    end_told_at: float | None


@dataclass(frozen=True, slots=True)
class AlertRules:
    """Whom to tell, and of what."""

    targets: tuple[str, ...] = ()
    off: tuple[str, ...] = ()  # kinds that are not looked for
    failing_days: float = 3.0
    every_minutes: float = 15.0  # at most one message in that time
    quiet_from: str = ""  # as 22:00; empty: no quiet hours
    quiet_until: str = ""
    zone: str = "UTC"


def get_rules(connection: Connection) -> AlertRules:
    stored = get_setting(connection, RULES_KEY) or {}
    known = {key: value for key, value in stored.items() if key in AlertRules.__dataclass_fields__}
    lists = {key: tuple(known[key]) for key in ("targets", "off") if key in known}
    return AlertRules(**{**known, **lists})


def set_rules(connection: Connection, rules: AlertRules, now: float) -> AlertRules:
    refuse_unknown_targets(connection, rules.targets)
    stored = {name: getattr(rules, name) for name in AlertRules.__dataclass_fields__}
    stored |= {"targets": list(rules.targets), "off": list(rules.off)}
    set_setting(connection, RULES_KEY, stored, now)
    return get_rules(connection)


def note_problems(connection: Connection, found: Iterable[Problem], now: float) -> None:
    """Open an alert for each problem that is new, and end those whose problem has not been seen for a while."""
    problems = {(each.kind, each.subject): each for each in found}
    open_now = {(each.kind, each.subject): each for each in open_alerts(connection)}
    insert_rows(
        connection,
        alerts,
        ("kind", "subject", "data", "since_at", "seen_at"),
        [
            (each.kind, storable(each.subject), _json(each), now, now)
            for key, each in problems.items()
            if key not in open_now
        ],
    )
    update_rows(
        connection,
        alerts,
        ("id",),
        ("data", "seen_at"),
        [(_json(problems[key]), now, each.id) for key, each in sorted(open_now.items()) if key in problems],
    )
    over = [
        each.id
        for key, each in open_now.items()
        if key not in problems and not 0 <= now - each.seen_at < QUIET_SECONDS
    ]
    if over:
        connection.execute(update(alerts).where(alerts.c.id.in_(over)).values(ended_at=now))


def open_alerts(connection: Connection) -> list[Alert]:
    """What holds now, oldest first."""
    query = select(alerts).where(text(OPEN_ALERT)).order_by(alerts.c.id)
    return [_alert(row) for row in connection.execute(query)]


def list_alerts(connection: Connection, *, before_id: int | None = None, limit: int = 50) -> list[Alert]:
    """Alerts, newest first, those that are over too."""
    query = select(alerts).order_by(alerts.c.id.desc()).limit(limit)
    if before_id is not None:
        query = query.where(alerts.c.id < before_id)
    return [_alert(row) for row in connection.execute(query)]


def untold_alerts(connection: Connection) -> list[Alert]:
    """What has begun or ended since the last message; what ended before it was told needs no message."""
    connection.execute(
        update(alerts)
        .where(text(UNTOLD_ALERT), alerts.c.told_at.is_(None), alerts.c.ended_at.is_not(None))
        .values(told_at=alerts.c.ended_at, end_told_at=alerts.c.ended_at)
    )
    query = select(alerts).where(text(f"({UNTOLD_ALERT})")).order_by(alerts.c.id).limit(MOST_TOLD)
    return [_alert(row) for row in connection.execute(query)]


def last_told_at(connection: Connection) -> float:
    return float(get_setting(connection, TOLD_KEY) or 0.0)


def note_told(
    connection: Connection, told: Sequence[Alert], messages: Iterable[NewDelivery], now: float
) -> None:
    """Put the message with these alerts into the outbox, and note that they were told."""
    begun = [each.id for each in told if each.ended_at is None]
    over = [each.id for each in told if each.ended_at is not None]
    connection.execute(update(alerts).where(alerts.c.id.in_(begun)).values(told_at=now))
    connection.execute(update(alerts).where(alerts.c.id.in_(over)).values(end_told_at=now))
    put_in_outbox(connection, messages, "alert", now)
    set_setting(connection, TOLD_KEY, now, now)


def forget_alerts(connection: Connection, before: float) -> int:
    """Delete alerts that were over before then."""
    return connection.execute(delete(alerts).where(alerts.c.ended_at < before)).rowcount


def _json(problem: Problem) -> str | None:
    return storable(orjson.dumps(dict(problem.data)).decode())


def _alert(row: Row[Any]) -> Alert:
    return Alert(
        row.id,
        row.kind,
        row.subject,
        orjson.loads(row.data),
        row.since_at,
        row.seen_at,
        row.told_at,
        row.ended_at,
        row.end_told_at,
    )

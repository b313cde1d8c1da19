"""What models were asked: answers to be used again, and what was spent in a day, by pipeline and digest."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, delete, func, select, update

from headwater.store.core.bulk import is_sqlite, storable
from headwater.store.core.tables import model_answers, model_usage
from headwater.store.pipelines.templates import list_templates


@dataclass(frozen=True, slots=True)
class Limits:
    """Of a day; None: no limit."""

    requests: int | None = None
    tokens: int | None = None

    def exceeded_by(self, requests: int, tokens: int) -> bool:
        return (self.requests is not None and requests >= self.requests) or (
            self.tokens is not None and tokens >= self.tokens
        )


@dataclass(frozen=True, slots=True)
class DayUsage:
    """What one owner asked of one model in a day."""

    day: str
    owner: str
    model: str
    requests: int
    cached: int
    input_tokens: int
    output_tokens: int
    cost: float
    refused: int = 0  # requests that were not made, since the budget was spent


def day_of(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")


def reserve_request(
    connection: Connection, owner: str, model: str, now: float, *, own: Limits, all_: Limits
) -> bool:
    """Count a request, if the budget of the owner and that of all together allow it. False: the day's is spent."""
    day = day_of(now)
    if not is_sqlite(connection):
        # One at a time for a day, so that no two take the last request.
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext(%s))", (f"model_usage {day}",))
    column = model_usage.c
    sums = select(
        func.coalesce(func.sum(column.requests), 0),
        func.coalesce(func.sum(column.input_tokens + column.output_tokens), 0),
    ).where(column.day == day)
    if all_.exceeded_by(*connection.execute(sums).one()) or own.exceeded_by(
        *connection.execute(sums.where(column.owner == owner)).one()
    ):
        _add(connection, day, owner, model, refused=1)
        return False
    _add(connection, day, owner, model, requests=1)
    return True


def add_usage(
    connection: Connection, owner: str, model: str, now: float, tokens: tuple[int, int], cost: float | None
) -> None:
    """Count the tokens of a request that was counted already."""
    _add(
        connection,
        day_of(now),
        owner,
        model,
        input_tokens=tokens[0],
        output_tokens=tokens[1],
        cost=cost or 0.0,
    )


def _add(connection: Connection, day: str, owner: str, model: str, **counts: float) -> None:
    mark = "?" if is_sqlite(connection) else "%s"
    names = list(counts)
    connection.exec_driver_sql(
        f"INSERT INTO model_usage (day, owner, model, {', '.join(names)})"
        f" VALUES ({', '.join([mark] * (3 + len(names)))}) ON CONFLICT (day, owner, model) DO UPDATE SET "
        + ", ".join(f"{name} = model_usage.{name} + excluded.{name}" for name in names),
        (day, owner, storable(model), *counts.values()),
    )


def find_answer(connection: Connection, key: bytes) -> tuple[str, int, int] | None:
    """What was said to this question, with its tokens."""
    column = model_answers.c
    query = select(column.answer, column.input_tokens, column.output_tokens).where(column.key == key)
    row = connection.execute(query).first()
    return None if row is None else (row.answer, row.input_tokens, row.output_tokens)


def note_answer_used(connection: Connection, key: bytes, owner: str, model: str, now: float) -> None:
    connection.execute(update(model_answers).where(model_answers.c.key == key).values(used_at=now))
    _add(connection, day_of(now), owner, model, cached=1)


def keep_answer(connection: Connection, key: bytes, text: str, tokens: tuple[int, int], now: float) -> None:
    values: dict[str, Any] = {
        "answer": storable(text),
        "input_tokens": tokens[0],
        "output_tokens": tokens[1],
        "created_at": now,
        "used_at": now,
    }
    if connection.execute(update(model_answers).where(model_answers.c.key == key).values(**values)).rowcount:
        return
    mark = "?" if is_sqlite(connection) else "%s"
    connection.exec_driver_sql(
        f"INSERT INTO model_answers (key, {', '.join(values)})"
        f" VALUES ({', '.join([mark] * (1 + len(values)))}) ON CONFLICT (key) DO NOTHING",
        (key, *values.values()),
    )


def forget_answers(connection: Connection, before: float) -> int:
    """Delete answers that were not used since then."""
    return connection.execute(delete(model_answers).where(model_answers.c.used_at < before)).rowcount


def read_usage(connection: Connection, since: float) -> list[DayUsage]:
    """What was asked since that day, newest day first."""
    column = model_usage.c
    query = (
        select(model_usage)
        .where(column.day >= day_of(since))
        .order_by(column.day.desc(), column.owner, column.model)
    )
    return [DayUsage(*row) for row in connection.execute(query)]


def name_owners(connection: Connection, found: Iterable[DayUsage]) -> dict[str, str]:
    """The names of the pipelines and digests that asked, by `owner`; of one that is removed, its number."""
    owners = {each.owner for each in found}
    names = {f"template:{each.id}": each.name for each in list_templates(connection)} if owners else {}
    return {owner: names.get(owner, owner.partition(":")[2] or owner) for owner in owners}

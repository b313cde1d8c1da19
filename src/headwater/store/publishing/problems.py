"""What is wrong right now, as rows show it: sources, pipelines, models, messages and digests that need a person.

Each query reads few rows, from an index, however many sources there are. Silent sources are looked for among a few
thousand at a time.
"""

from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from sqlalchemy import Connection, func, select, text

from headwater.errors import FailureKind
from headwater.store.core.tables import (
    UNUSUAL,
    deliveries,
    digests,
    model_usage,
    pipeline_executions,
    pipeline_templates,
    sources,
    targets,
)
from headwater.store.pipelines.models import day_of
from headwater.store.publishing.alerts import Problem
from headwater.store.reading.items import recent_times

DAY = 86_400.0
MOST_SOURCES = 1_000  # that are named at a time
RECENT_RUNS = 2_000
FEWEST_FAILURES = 5
FAILING_SHARE = 0.2
DIGEST_ATTEMPTS = 3
SILENT_AT_LEAST = 3 * DAY
SILENT_AT_MOST = 60 * DAY  # one that has been silent for longer is not news
FEWEST_ITEMS = 6


def source_problems(connection: Connection, now: float, failing_days: float) -> Iterator[Problem]:
    """Sources that need their owner, are gone, or have been failing for long."""
    column = sources.c
    query = (
        select(
            *(column.id, column.name, column.status, column.last_error, column.last_error_kind),
            *(column.failing_since_at, column.consecutive_failures),
        )
        .where(
            text(f"({UNUSUAL})"),
            ~column.is_deleted,
            column.schedule_enabled,
            (column.status != "ok") | (column.consecutive_failures > 0),
        )
        .order_by(column.id)
        .limit(MOST_SOURCES)
    )
    for row in connection.execute(query):
        about = {"id": row.id, "name": row.name, "error": row.last_error or ""}
        since = now - (row.failing_since_at or now)
        if row.status == "retired":
            yield Problem("gone", str(row.id), about)
        elif row.last_error_kind == FailureKind.UNAUTHORIZED or row.status == "needs_attention":
            yield Problem("credentials", str(row.id), about)
        elif row.last_error_kind == FailureKind.CHANGED_STRUCTURE:
            yield Problem("structure", str(row.id), about)
        elif since >= failing_days * DAY:
            yield Problem("failing", str(row.id), {**about, "days": int(since / DAY)})


def silent_sources(
    connection: Connection, now: float, after_id: int, limit: int
) -> tuple[list[Problem], int]:
    """Sources that publish nothing although they used to, among the next so many; and where to go on (0: the start)."""
    column = sources.c
    numbers = select(column.id).where(column.id > after_id).order_by(column.id).limit(limit)
    ids = list(connection.execute(numbers).scalars())
    if not ids:
        return [], 0
    query = (
        select(column.id, column.name, column.last_entry_at)
        .where(
            column.id > after_id,
            column.id <= ids[-1],
            ~column.is_deleted,
            column.schedule_enabled,
            column.consecutive_failures == 0,
            column.last_entry_at > now - SILENT_AT_MOST,
            column.last_entry_at < now - SILENT_AT_LEAST,
        )
        .order_by(column.id)
    )
    found = [
        Problem(
            "silent",
            str(row.id),
            {"id": row.id, "name": row.name, "days": int((now - row.last_entry_at) / DAY)},
        )
        for row in connection.execute(query).all()
        if is_silent(recent_times(connection, row.id, 20), now)
    ]
    return found, ids[-1] if len(ids) == limit else 0


def is_silent(times: list[float], now: float) -> bool:
    """Whether a source that published at these times should have published again long ago."""
    if len(times) < FEWEST_ITEMS:
        return False
    gaps = [later - earlier for earlier, later in pairwise(times)]
    return now - times[-1] > max(SILENT_AT_LEAST, 7 * median(gaps), 2 * max(gaps))


def pipeline_problems(connection: Connection, now: float) -> Iterator[Problem]:
    """Templates of which many runs have failed in the last day."""
    run = pipeline_executions.c
    counts: dict[int, dict[str, int]] = {}
    for status in ("failed", "completed"):
        newest = (
            select(run.template_id, run.completed_at)
            .where(run.status == status, run.template_id.is_not(None))
            .order_by(run.id.desc())
            .limit(RECENT_RUNS)
        )
        for template_id, completed_at in connection.execute(newest):
            if (completed_at or 0.0) > now - DAY:
                its = counts.setdefault(template_id, {"failed": 0, "completed": 0})
                its[status] += 1
    bad = {
        template_id: its
        for template_id, its in counts.items()
        if its["failed"] >= FEWEST_FAILURES
        and its["failed"] >= FAILING_SHARE * (its["failed"] + its["completed"])
    }
    names = select(pipeline_templates.c.id, pipeline_templates.c.name).where(pipeline_templates.c.id.in_(bad))
    for template_id, name in connection.execute(names.order_by(pipeline_templates.c.id)):
        its = bad[template_id]
        data = {
            "id": template_id,
            "name": name,
            "failed": its["failed"],
            "count": its["failed"] + its["completed"],
        }
        yield Problem("pipeline", str(template_id), data)


def budget_problems(connection: Connection, now: float) -> Iterator[Problem]:
    """Pipelines and digests to which a model was refused today, since its budget is spent."""
    column = model_usage.c
    query = select(column.owner, func.sum(column.refused)).where(
        column.day == day_of(now), column.refused > 0
    )
    for owner, _ in connection.execute(query.group_by(column.owner).order_by(column.owner)):
        yield Problem("budget", owner, {"name": owner})


def delivery_problems(connection: Connection, now: float) -> Iterator[Problem]:
    """Targets to which messages could not be sent in the last day."""
    column = deliveries.c
    query = (
        select(targets.c.name, func.count(), func.max(column.error_message))
        .join_from(deliveries, targets)
        .where(column.ended_at > now - DAY, column.status == "failed", column.kind != "alert")
        .group_by(targets.c.name)
        .order_by(targets.c.name)
    )
    for name, count, error in connection.execute(query):
        yield Problem("delivery", name, {"name": name, "count": count, "error": error or ""})


def digest_problems(connection: Connection) -> Iterator[Problem]:
    """Digests whose next issue fails again and again."""
    column = digests.c
    query = select(column.name, column.error_message).where(
        column.is_enabled, column.attempts >= DIGEST_ATTEMPTS, column.error_message.is_not(None)
    )
    for name, error in connection.execute(query.order_by(column.name)):
        yield Problem("digest", name, {"name": name, "error": error})

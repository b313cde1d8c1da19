"""Runs that start without a person: for what a visit stored, and for tags that a pipeline gave.

An item's runs happen one after the other, in the order of the templates: a run that starts while another of its item
is not over waits for it. The end of a run wakes the next in the same transaction.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson
from sqlalchemy import Connection

from headwater.model import fold_tag
from headwater.store.core.bulk import insert_rows, select_by
from headwater.store.core.tables import pipeline_steps
from headwater.store.pipelines.attaching import Attachment, Attachments
from headwater.store.pipelines.jobs import defer_jobs
from headwater.store.pipelines.templates import Template, list_templates

Trigger = Literal["scheduled", "manual"]
# A run that is to begin once the others of its item have ended has no time to be due at.
_OTHERS = (
    "SELECT 1 FROM pipeline_executions o WHERE o.item_id = {item} AND o.trigger = 'scheduled'"
    " AND o.completed_at IS NULL"
)
_WAKE = (
    "UPDATE pipeline_executions SET due_at = ? WHERE id IN (SELECT min(e.id) FROM pipeline_executions e"
    " WHERE e.completed_at IS NULL AND e.due_at IS NULL AND e.item_id {values} AND NOT EXISTS"
    f" ({_OTHERS.format(item='e.item_id')} AND o.due_at IS NOT NULL) GROUP BY e.item_id) RETURNING id"
)
_FORGOTTEN = (
    "SELECT DISTINCT e.item_id FROM pipeline_executions e WHERE e.status = 'pending' AND e.completed_at IS NULL"
    f" AND e.due_at IS NULL AND NOT EXISTS ({_OTHERS.format(item='e.item_id')} AND o.due_at IS NOT NULL)"
)


@dataclass(frozen=True, slots=True)
class StoredItems:
    """What a visit stored: items by their keys, each with its publisher's categories."""

    source_id: int
    type: str
    folder: str | None
    new: Mapping[bytes, Sequence[str]]
    changed: Mapping[bytes, Sequence[str]]
    at: float


def start_for_visits(connection: Connection, visits: Iterable[StoredItems]) -> None:
    """Start the runs of what visits have just stored."""
    visits = [visit for visit in visits if visit.new or visit.changed]
    if not visits:
        return
    attachments = Attachments.of_sources(connection, [visit.source_id for visit in visits])
    if not (attachments.general or attachments.by_source):
        return
    templates = list_templates(connection)
    for visit in visits:
        matching = attachments.matching(visit.source_id, visit.type, visit.folder)
        for template in templates:
            its = [each for each in matching if each.template_id == template.id]
            found = {**visit.new, **visit.changed} if template.run_on_change else visit.new
            if keys := _wanted(found, its):
                insert_runs(
                    connection,
                    template,
                    Start("scheduled", visit.at),
                    "i.source_id = ? AND i.id_hash {values}",
                    keys,
                    "bytea",
                    visit.source_id,
                )


def _wanted(found: Mapping[bytes, Sequence[str]], attachments: Sequence[Attachment]) -> list[bytes]:
    """The keys of the items that the attachments of one template concern."""
    if not attachments:
        return []
    if any(each.scope != "tag" for each in attachments):
        return list(found)
    tags = {each.value for each in attachments}
    return [key for key, categories in found.items() if not tags.isdisjoint(map(fold_tag, categories))]


def start_for_tags(connection: Connection, tags: Mapping[int, Iterable[str]], now: float) -> None:
    """Start the runs of templates that are attached to tags which items, by their number, have just been given."""
    if not tags:
        return
    wanted: dict[int, set[str]] = {}
    for template_id, tag in connection.exec_driver_sql(
        "SELECT template_id, value FROM pipeline_attachments WHERE scope = 'tag'"
    ):
        wanted.setdefault(template_id, set()).add(tag)
    for template in list_templates(connection) if wanted else ():
        its = wanted.get(template.id, set())
        item_ids = [item_id for item_id, given in tags.items() if not its.isdisjoint(given)]
        if item_ids:
            insert_runs(connection, template, Start("scheduled", now), "i.id {values}", item_ids, "bigint")


@dataclass(frozen=True, slots=True)
class Start:
    """How runs start. `forced`: also for a version of an item that has had a run of the template."""

    trigger: Trigger
    at: float
    runtime_config: str = "{}"  # JSON
    forced: bool = False


def insert_runs(
    connection: Connection,
    template: Template,
    start: Start,
    condition: str,
    keys: Iterable[Any],
    key_type: str,
    *more: Any,
) -> list[int]:
    """Insert runs with their steps for the items of a condition over `items i`; answers their numbers.

    One that starts automatically waits for the item's other runs.
    """
    if not template.steps:
        return []
    forced_no = (
        "(SELECT COALESCE(max(e.forced_no), -1) + 1 FROM pipeline_executions e WHERE e.item_id = i.id"
        " AND e.item_version = i.version AND e.template_id = t.id)"
    )
    waits = start.trigger == "scheduled"
    due_at = f"CASE WHEN EXISTS ({_OTHERS.format(item='i.id')}) THEN NULL ELSE ? END" if waits else "?"
    rows = select_by(
        connection,
        "INSERT INTO pipeline_executions (item_id, item_version, template_id, forced_no, trigger, runtime_config,"
        " next_step_type, due_at, created_at)"
        f" SELECT i.id, i.version, t.id, {forced_no if start.forced else 0}, ?, ?, ?, {due_at}, ?"
        f" FROM items i CROSS JOIN pipeline_templates t WHERE t.id = ? AND {condition}"
        " ON CONFLICT (item_id, item_version, template_id, forced_no) DO NOTHING RETURNING id",
        keys,
        key_type,
        start.trigger,
        start.runtime_config,
        template.steps[0]["step_type"],
        start.at,
        start.at,
        template.id,
        *more,
    )
    run_ids = [row[0] for row in rows]
    steps = [
        (
            index,
            step["step_type"],
            step["is_critical"],
            orjson.dumps(step["config"]).decode(),
            step["timeout_seconds"],
            step["retries"],
        )
        for index, step in enumerate(template.steps)
    ]
    insert_rows(
        connection,
        pipeline_steps,
        ("execution_id", "step_index", "step_type", "is_critical", "config", "timeout_seconds", "retries"),
        [(run_id, *step) for run_id in run_ids for step in steps],
    )
    defer_jobs(connection, run_ids)
    return run_ids


def wake_waiting(connection: Connection, item_ids: Iterable[int], now: float) -> None:
    """Let the next run of each of these items begin, unless one is under way."""
    rows = select_by(connection, _WAKE, sorted(set(item_ids)), "bigint", now)
    defer_jobs(connection, [row[0] for row in rows])


def wake_forgotten(connection: Connection, now: float) -> None:
    """The same for all items: whatever a run waited for is over."""
    wake_waiting(connection, [row[0] for row in connection.exec_driver_sql(_FORGOTTEN)], now)

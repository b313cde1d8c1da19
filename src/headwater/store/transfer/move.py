"""Moving everything to another database, in steps that a crash may cut anywhere.

Each step copies some rows and, in the same transaction, writes down in the new database how far it has come; run
again, it goes on from there. Until the end the new database says that it is unfinished, and no Headwater uses it.
The old one is only read. It must not change meanwhile: before it goes on and when it is done, what it holds is
compared with what it held at the beginning.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, func, select

from headwater.errors import InputError, StoreError
from headwater.store.core.clock import database_time
from headwater.store.core.database import Store
from headwater.store.core.migrate import HEAD, UNFINISHED, building, revision, upgrade_in
from headwater.store.core.settings import get_setting, remove_setting, set_setting
from headwater.store.core.tables import collection_records, items, pipeline_executions, source_leases
from headwater.store.reading.search import index_all, restart_index
from headwater.store.transfer.copying import (
    MARK,
    Key,
    continue_numbers,
    copied_tables,
    count_rows,
    drop_everything,
    has_rows,
    is_binary,
    is_date,
    key_columns,
    last_position,
    remove_first_user,
    set_last_position,
    snapshot,
    stream_rows,
    wake_runs,
    write_rows,
)

Advance = Callable[[int, int, str], None]

INDEX_BATCH = 2_000


@dataclass(frozen=True, slots=True)
class Moved:
    """What was moved: rows by table, and where an earlier, interrupted move had come to."""

    rows: dict[str, int]
    resumed_after: int


def move(origin: Store, target: Store, now: float, advance: Advance, *, start_over: bool = False) -> Moved:
    """Copy everything from `origin`, which is open, to `target`, which need not have tables yet."""
    if origin.url == target.url:
        raise InputError("{url} is the database in use; give another to move to", url=target.shown_url)
    _refuse_busy(origin)
    with snapshot(origin, alone=True) as old:
        state = _fingerprint(old)
        done = _begin(target, state, now, start_over=start_over)
        tables = copied_tables()
        counts = {str(table.name): count_rows(old, table) for table in tables}
        total = sum(counts.values())
        resumed_after = moved = sum(part["rows"] for part in done.values())
        for table in tables:
            for rows in stream_rows(old, table, _key_from_json(table, done.get(table.name))):
                _copy(target, table, rows, state, done, now)
                moved += len(rows)
                advance(moved, total, table.name)
        _finish(target, tables, counts, last_position(old))
    with snapshot(origin) as old:
        if _fingerprint(old) != state:
            raise _changed(origin)
    _mark_finished(target)
    return Moved(counts, resumed_after)


def index_moved(target: Store, now: float, advance: Advance) -> None:
    """Make the search index of what was moved again; cut off anywhere, the next search finishes it."""
    with target.reading() as connection:
        total = connection.execute(select(func.count()).select_from(items)).scalar_one()
    done = 0

    def count(indexed: int) -> None:
        nonlocal done
        done += indexed
        advance(done, total, "item_words")

    index_all(target, now, INDEX_BATCH, count)


def last_visit_at(connection: Connection) -> float | None:
    """When a source was last visited."""
    return connection.execute(select(func.max(collection_records.c.started_at))).scalar()


def _refuse_busy(origin: Store) -> None:
    with origin.reading() as connection:
        now = database_time(connection)
        leases = [
            connection.execute(
                select(func.max(table.c.lease_until)).where(table.c.lease_until > now)
            ).scalar()
            for table in (source_leases, pipeline_executions)
        ]
    until = max((lease for lease in leases if lease is not None), default=None)
    if until is not None:
        raise InputError(
            "another process is using {url}; stop every collector and worker first"
            " (one that was killed counts as running for another {seconds:.0f} s)",
            url=origin.shown_url,
            seconds=until - now,
        )


def _fingerprint(connection: Connection) -> dict[str, Any]:
    """Numbers that differ after every visit, step and edit."""
    found: dict[str, Any] = {"schema": HEAD, "position": last_position(connection)}
    for table in copied_tables():
        watched: list[ColumnElement[Any]] = [func.count()]
        for name in ("id", "updated_at", "created_at", "started_at", "completed_at", "last_used_at"):
            if name in table.c and not is_date(table.c[name]):
                watched.append(func.max(table.c[name]))
        if "lease_no" in table.c:
            watched.append(func.sum(table.c.lease_no))
        found[str(table.name)] = [
            None if value is None else float(value)
            for value in connection.execute(select(*watched).select_from(table)).one()
        ]
    return found


def _begin(target: Store, state: dict[str, Any], now: float, *, start_over: bool) -> dict[str, Any]:
    """Make the tables, or find how far an earlier move has come: by table, the last key and how many rows."""
    with target.writing() as connection:
        if revision(connection) == UNFINISHED:
            mark = get_setting(connection, MARK) or {"state": None}
            if not start_over and mark["state"] == state:
                return dict(mark["done"])
            if not start_over:
                raise InputError(
                    "{url} is incomplete, and the database has changed since: begin again with --start-over",
                    url=target.shown_url,
                )
            drop_everything(connection)
        with building(connection, target):
            if has_rows(connection):
                raise InputError("the database {url} is not empty; move to a new one", url=target.shown_url)
            upgrade_in(connection, "head")
            remove_first_user(connection)
            connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{UNFINISHED}'")
            set_setting(connection, MARK, {"state": state, "done": {}}, now)
    return {}


def _copy(
    target: Store, table: Table, rows: list[Key], state: dict[str, Any], done: dict[str, Any], now: float
) -> None:
    before = done.get(table.name, {"rows": 0})["rows"]
    places = [list(table.c).index(column) for column in key_columns(table)]
    last = tuple(rows[-1][place] for place in places)
    done[str(table.name)] = {"last": _key_to_json(table, last), "rows": before + len(rows)}
    with target.writing() as connection:
        write_rows(connection, table, [column.name for column in table.c], rows)
        set_setting(connection, MARK, {"state": state, "done": done}, now)


def _key_to_json(table: Table, key: Key) -> list[Any]:
    return [
        b64encode(value).decode() if is_binary(column) else value
        for value, column in zip(key, key_columns(table), strict=True)
    ]


def _key_from_json(table: Table, done: dict[str, Any] | None) -> Key | None:
    if done is None:
        return None
    return tuple(
        b64decode(value) if is_binary(column) else value
        for value, column in zip(done["last"], key_columns(table), strict=True)
    )


def _finish(target: Store, tables: list[Table], counts: dict[str, int], position: int) -> None:
    with target.writing() as connection:
        found = {str(table.name): count_rows(connection, table) for table in tables}
        if found != counts:
            different = ", ".join(
                f"{name}: {counts[name]} ≠ {found[name]}" for name in counts if counts[name] != found[name]
            )
            raise StoreError(
                "not everything was copied to {url}: {different}", url=target.shown_url, different=different
            )
        continue_numbers(connection, tables)
        restart_index(connection)
        set_last_position(connection, position)


def _mark_finished(target: Store) -> None:
    with target.writing() as connection:
        remove_setting(connection, MARK)
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{HEAD}'")
        wake_runs(connection)


def _changed(origin: Store) -> StoreError:
    return StoreError(
        "{url} has changed while it was copied: stop every collector and worker, then begin again"
        " with --start-over",
        url=origin.shown_url,
    )

"""Explains every statement that a test makes the store run, and reports those that read a whole large table.

SQLite without statistics plans by the schema alone, so a small table shows the plan of a large one. PostgreSQL is
told not to read whole tables; where it does all the same, or reads a whole index, there is no other way.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import orjson
from sqlalchemy import event

import headwater
from headwater.store.core.database import Store
from headwater.store.core.tables import metadata
from tests.query_scans import ALLOWED, SMALL_TABLES

HOME = Path(headwater.__file__).parent
MECHANICS = {"store/core/bulk.py", "store/core/database.py", "store/core/paging.py"}
EXPLAINABLE = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b", re.IGNORECASE)
LISTS = re.compile(r"(?:\((?:[?%s]+(?:, ?)?)+\)(?:, ?)?)+|\b(?:\d+)\b")
LARGE = {table.name for table in metadata.sorted_tables} - SMALL_TABLES
# An index of some rows only is as good as those are few.
FEW = {
    str(index.name)
    for table in metadata.sorted_tables
    for index in table.indexes
    if index.dialect_options["sqlite"]["where"] is not None
} - {"uq_sources_type_url"}

_explained: set[tuple[str, str, str]] = set()


class PlanWatcher:
    """Watches one store; `scans` names the function, the table and the statement of each scan."""

    def __init__(self, store: Store) -> None:
        self.scans: list[str] = []
        self._dialect = store.engine.dialect.name
        event.listen(store.engine, "before_cursor_execute", self._look)

    def _look(
        self, connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool
    ) -> None:
        if not EXPLAINABLE.match(statement):
            return
        caller = _caller()
        if caller is None:
            return
        key = (self._dialect, caller, LISTS.sub("…", statement))
        if key in _explained:
            return
        _explained.add(key)
        if many or isinstance(parameters, list):
            parameters = parameters[0]
        scanned = set(self._scanned(connection.connection.driver_connection, statement, parameters))
        for table in sorted(scanned & LARGE):
            if not any(_allows(each, caller, statement) for each in ALLOWED):
                self.scans.append(
                    f"{caller} scans {table} on {self._dialect}: {' '.join(statement.split())[:2000]}"
                )

    def _scanned(self, raw: Any, statement: str, parameters: Any) -> Iterator[str]:
        if self._dialect == "sqlite":
            plan = [row[3] for row in raw.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]
            yield from _scanned_by_sqlite(plan, statement)
            return
        with raw.cursor() as cursor:
            cursor.execute("SAVEPOINT explain")
            with suppress(Exception):
                # Joins of small tables are made by reading all of both, unless there is nothing but loops.
                for way in ("seqscan", "hashjoin", "mergejoin"):
                    cursor.execute(f"SET LOCAL enable_{way} = off")
                cursor.execute(f"EXPLAIN (FORMAT JSON) {statement}", parameters or None)
                (plan,) = cursor.fetchone()
                for each in plan if isinstance(plan, list) else orjson.loads(plan):
                    yield from _scanned_by_postgres(each["Plan"], stops_early=False)
            cursor.execute("ROLLBACK TO SAVEPOINT explain")
            cursor.execute("RELEASE SAVEPOINT explain")


def _allows(entry: str, caller: str, statement: str) -> bool:
    where, _, words = entry.partition(" | ")
    return caller.startswith(where) and words in statement


def _caller() -> str | None:
    """The store's function that runs the statement; None when the test itself does."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(HOME):
            name = path.relative_to(HOME).as_posix()
            if name.startswith("store/") and name not in MECHANICS:
                return f"{name}:{frame.f_code.co_name}"
            if name not in MECHANICS:
                return None
        elif "tests" in path.parts and "site-packages" not in path.parts and path.name != "query_plans.py":
            return None
        frame = frame.f_back
    return None


def _scanned_by_sqlite(plan: list[str], statement: str) -> Iterator[str]:
    if " LIMIT " in statement and "USE TEMP B-TREE FOR ORDER BY" not in plan:
        return  # a page in the order of an index; what it leaves out meanwhile is seen on PostgreSQL
    for line in plan:
        match = re.match(r"SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?", line)
        if match is not None and match[2] not in FEW:
            named = re.search(rf"\b(\w+) AS {match[1]}\b", statement)
            yield named[1] if named else match[1]


def _scanned_by_postgres(node: dict[str, Any], *, stops_early: bool) -> Iterator[str]:
    kind = node["Node Type"]
    if kind == "Limit":
        stops_early = True
    elif kind in ("Sort", "Aggregate", "WindowAgg", "Unique"):
        stops_early = False  # these want all before they give the first
    elif kind == "Bitmap Heap Scan":
        if any("Index Cond" not in each and each.get("Index Name", "") not in FEW for each in _bitmaps(node)):
            yield node["Relation Name"]
    elif kind in ("Seq Scan", "Index Scan", "Index Only Scan") and "Index Cond" not in node:
        is_page = stops_early and "Filter" not in node and kind != "Seq Scan"
        if not is_page and node.get("Index Name") not in FEW:
            yield node["Relation Name"]
    for each in node.get("Plans", ()):
        yield from _scanned_by_postgres(each, stops_early=stops_early)


def _bitmaps(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for each in node.get("Plans", ()):
        if each["Node Type"] == "Bitmap Index Scan":
            yield each
        yield from _bitmaps(each)

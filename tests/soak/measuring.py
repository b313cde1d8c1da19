"""Memory and file handles of processes over time, rows of tables, and what of it is a leak."""

import time
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import psutil
from numpy.typing import NDArray
from sqlalchemy import func, inspect, select, table

from headwater.store.core.database import Store

MEGABYTE = 1 << 20
TELLING_SECONDS = 60.0  # of a half: in less, a process that has just begun looks like a leak
PARTS = 6  # of the second half
# What grows with what was collected, and is meant to: retention decides how much of it stays.
KEPT = {
    "items",
    "seen_ids",
    "collection_records",
    "collection_hours",
    "collection_minutes",
    "pipeline_executions",
    "pipeline_steps",
    "outlet_items",
    "story_keys",  # for four days
    "story_items",
}


@dataclass
class Series:
    """One process until it is killed: seconds, megabytes, handles."""

    at: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    handles: list[int] = field(default_factory=list)

    def add(self, process: psutil.Process) -> None:
        with process.oneshot():
            self.memory.append(process.memory_info().rss / MEGABYTE)
            self.handles.append(process.num_fds())
        self.at.append(time.monotonic())

    def memory_growth(self) -> float:
        """How much the second half of the time added by growing steadily.

        It is cut into parts and their medians are compared: what leaks has grown from most of them to the next, while
        something that is loaded once (compiled arithmetic, say) is one step.
        """
        if not self._is_telling():
            return 0.0
        medians = [float(np.median(part)) for part in self._parts(self.memory)]
        return float(np.median(np.diff(medians))) * PARTS

    def handles_growth(self) -> float:
        """By how many the least of the last part is above the most of the first half.

        Pools fill and empty with the load and with every restart of the database; a leak leaves all that behind.
        """
        if not self._is_telling():
            return 0.0
        return float(self._parts(self.handles)[-1].min() - max(self.handles[: len(self.at) // 2]))

    def _is_telling(self) -> bool:
        return len(self.at) >= 2 * PARTS and self.at[-1] - self.at[len(self.at) // 2] >= TELLING_SECONDS

    def _parts(self, values: list[float] | list[int]) -> list[NDArray[np.float64]]:
        return np.array_split(np.array(values[len(values) // 2 :], dtype=float), PARTS)

    def per_hour(self) -> float:
        if not self._is_telling():
            return 0.0
        return self.memory_growth() / (self.at[-1] - self.at[len(self.at) // 2]) * 3600


class Meter:
    """Series by the name of a process. A process that was replaced begins a new series."""

    def __init__(self) -> None:
        self.series: dict[str, Series] = defaultdict(Series)
        self._pids: dict[str, int] = {}

    def sample(self, name: str, pid: int) -> None:
        if self._pids.get(name) != pid:
            self._pids[name] = pid
            self.series[name] = Series()
        try:
            self.series[name].add(psutil.Process(pid))
        except psutil.Error:
            return

    def leaks(self, most_megabytes: float, most_handles: float) -> list[str]:
        found = []
        for name, series in self.series.items():
            if (grown := series.memory_growth()) > most_megabytes:
                found.append(
                    f"{name}: {grown:.1f} MB more in the second half, at most {most_megabytes:g} expected"
                )
            if (grown := series.handles_growth()) > most_handles:
                found.append(f"{name}: {grown:.0f} more open files in the second half")
        return found

    def table(self) -> list[str]:
        lines = [f"{'process':28}{'samples':>8}{'MB first':>10}{'MB last':>9}{'MB/hour':>9}{'files':>12}"]
        for name, each in sorted(self.series.items()):
            if each.at:
                files = f"{each.handles[0]}–{max(each.handles)}"
                lines.append(
                    f"{name:28}{len(each.at):8}{each.memory[0]:10.1f}{each.memory[-1]:9.1f}"
                    f"{each.per_hour():9.1f}{files:>12}"
                )
        return lines


def count_rows(store: Store) -> dict[str, int]:
    """Rows of every table there is, those of the queue's library too."""
    schemas = [None] if store.is_sqlite else [None, "procrastinate"]
    with store.reading() as connection:
        known = inspect(connection)
        return {
            name: connection.execute(
                select(func.count()).select_from(table(name, schema=schema))
            ).scalar_one()
            for schema in schemas
            for name in known.get_table_names(schema)
            if not name.startswith("item_words")  # the search index's own, of the database's making
        }


def bookkeeping_leaks(rows: dict[str, int], sources: int) -> list[str]:
    """Tables that hold more than the sources and what is under way account for."""
    return [
        f"{name}: {count} rows, at most {2 * sources + 200} expected"
        for name, count in rows.items()
        if name not in KEPT and count > 2 * sources + 200
    ]

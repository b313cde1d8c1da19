"""What a collector that runs for ever says in the log: failures as they come, and a line a minute when it worked."""

import logging
import time
from collections import Counter

from headwater.store.collecting.queue import Settlement

log = logging.getLogger("headwater.visits")

SUMMARY_SECONDS = 60.0


class Logbook:
    """Told of every settled visit. Says so in words, and in fields for programs that read the log."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._items_new = 0
        self._since = time.monotonic()

    def note(self, settlement: Settlement) -> None:
        visit = settlement.visit
        self._counts[visit.outcome] += 1
        self._items_new += visit.items_new
        level = logging.INFO if visit.outcome == "failed" else logging.DEBUG
        if log.isEnabledFor(level):
            log.log(
                level,
                "source %s %s: %s",
                visit.source_id,
                settlement.before.name,
                visit.error_message or f"{visit.outcome}, {visit.items_new} new items",
                extra={
                    "fields": {
                        "source_id": visit.source_id,
                        "outcome": visit.outcome,
                        "items_new": visit.items_new,
                        "http_status": visit.http_status,
                        "error_kind": visit.error_kind,
                        "seconds": round(visit.finished_at - visit.started_at, 3),
                    }
                },
            )

    def sum_up(self, in_flight: int, *, now: bool = False) -> None:
        """Say what was done since the last time, if that is a minute ago, or `now`."""
        seconds = time.monotonic() - self._since
        if seconds < SUMMARY_SECONDS and not now:
            return
        self._since += seconds
        visits, failed = self._counts.total(), self._counts["failed"]
        if visits:
            log.info(
                "%d visits in %.0f s: %d new items, %d unchanged, %d failed; %d in flight",
                visits,
                seconds,
                self._items_new,
                self._counts["unchanged"],
                failed,
                in_flight,
                extra={
                    "fields": {
                        "visits": visits,
                        "seconds": round(seconds, 3),
                        "items_new": self._items_new,
                        "unchanged": self._counts["unchanged"],
                        "failed": failed,
                        "in_flight": in_flight,
                    }
                },
            )
        self._counts.clear()
        self._items_new = 0

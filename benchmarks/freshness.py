"""Whether a freshness target is reached and kept, with the real steering, policy and schema: `make bench-freshness`.

Fleets of made-up sources live through some weeks on SQLite and PostgreSQL, an hour at a time. What counts is the mean
delay of the items found from the fifth day on (or the share found in time), and from the third day on after the fleet
has doubled. A thousand sources take minutes a month and target: `ARGS="--sources 1000 --minutes 60"`.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.collect.test_steering import make_publishers
from tests.databases import postgres_server
from tests.fleet import Day, Publisher, mean_of, run_fleet
from tests.histories import DAY, MONDAY

from benchmarks.engine.databases import new_database
from benchmarks.verdict import Verdict
from headwater.schedule.price import Goal
from headwater.store.core.database import Store

KINDS = ("SQLite", "PostgreSQL")
SETTLED_DAY = 5
SETTLED_AFTER_DOUBLING = 3
MOST_OFF_PERCENT = 15.0
SHARE = 0.9


def delay_of_share(days: list[Day]) -> float:
    """The time within which nine items in ten are found."""
    delays = sorted(delay for day in days for delay in day.delays)
    return delays[int(len(delays) * SHARE)]


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--sources", type=int, nargs="+", default=[1, 10, 40])
    arguments.add_argument("--minutes", type=float, nargs="+", default=[10, 30, 60, 120, 240])
    arguments.add_argument("--days", type=int, default=30)
    arguments.add_argument("--databases", nargs="+", choices=KINDS, default=KINDS)
    options = arguments.parse_args()
    verdict = Verdict("freshness")
    with postgres_server() as server_url, tempfile.TemporaryDirectory() as directory:

        def run(kind: str, publishers: list[Publisher], goal: Goal) -> list[Day]:
            with new_database(kind, Path(directory), server_url) as url, Store.open(url) as store:
                return run_fleet(store, publishers, MONDAY, options.days, goal)

        def tell(what: str, seen: float, wished: float) -> None:
            off = 100.0 * abs(seen / wished - 1.0)
            verdict.tell(f"{what}: {seen / 60:.1f} min, off by", off, " %", most=MOST_OFF_PERCENT)

        for kind in options.databases:
            for count in options.sources:
                for minutes in options.minutes:
                    goal = Goal(6.0, 60.0 * minutes)
                    history = run(kind, make_publishers(count, options.days), goal)
                    tell(f"{kind}, {count}, mean {minutes:g}", mean_of(history[SETTLED_DAY:]), 60.0 * minutes)
                minutes = options.minutes[len(options.minutes) // 2]
                history = run(kind, make_publishers(count, options.days), Goal(6.0, 60.0 * minutes, SHARE))
                seen = delay_of_share(history[SETTLED_DAY:])
                tell(f"{kind}, {count}, 90 % in {minutes:g}", seen, 60.0 * minutes)
                half = options.days // 2
                added = make_publishers(count, options.days, MONDAY + half * DAY)
                history = run(
                    kind, [*make_publishers(count, options.days), *added], Goal(6.0, 60.0 * minutes)
                )
                seen = mean_of(history[half + SETTLED_AFTER_DOUBLING :])
                tell(f"{kind}, {count} doubled, mean {minutes:g}", seen, 60.0 * minutes)
    return verdict.exit_code()


if __name__ == "__main__":
    sys.exit(main())

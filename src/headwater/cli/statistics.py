"""`headwater statistics`: how often sources publish, and how many visits found something new."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from headwater.cli.output import Json, print_json, print_table
from headwater.cli.session import Session
from headwater.language import translate as t
from headwater.wording import duration, percent, tell_frequency

if TYPE_CHECKING:
    from headwater.store.reports.statistics import SchedulerStatistics


def statistics(context: typer.Context, json: Json = False) -> None:
    from headwater.store.core.clock import database_time
    from headwater.store.reports.statistics import read_scheduler_statistics
    from headwater.views.statistics import scheduler_statistics_json

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        seen = read_scheduler_statistics(connection, database_time(connection))
    if json:
        print_json(scheduler_statistics_json(seen))
    else:
        print_table((t("Statistic"), t("Value")), _lines(seen), empty="")


def _lines(seen: "SchedulerStatistics") -> Iterator[tuple[str, str]]:
    from headwater.schedule.cadence import RSS_CADENCE_INTERVALS

    yield t("Sources visited"), str(seen.total_sources)
    yield t("Due now"), str(seen.due_sources)
    yield t("In back-off"), str(seen.backoff_sources)
    yield t("Failing"), str(seen.failing_sources)
    yield (
        t("Visits that found new items"),
        t("{hits} of {checks} ({share})").format(
            hits=seen.total_hits, checks=seen.total_checks, share=percent(seen.hit_rate)
        ),
    )
    for name, count in seen.by_frequency.items():
        yield t("Frequency: {frequency}").format(frequency=tell_frequency(name)), str(count)
    for name, count in seen.by_cadence.items():
        interval = duration(RSS_CADENCE_INTERVALS[name])
        yield t("Cadence {cadence}, every {interval}").format(cadence=name, interval=interval), str(count)

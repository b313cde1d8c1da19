"""What Prometheus reads: the numbers of the whole database, each found by an index, as its text format has them."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from headwater import __version__
from headwater.store.collecting.delays import Delays, count_delays, last_item_id
from headwater.store.collecting.queue import count_due
from headwater.store.pipelines.starting import count_unfinished_runs, run_durations
from headwater.store.reports.hours import VisitSums, visits_ever, visits_since
from headwater.store.reports.overview import SourceCounts, count_in_flight, count_sources, read_lag
from headwater.web.context import Context

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
DAY_SECONDS = 86_400.0
# From a minute to a week: what lies between two visits.
DELAY_BOUNDS = (60.0, 300.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 14_400.0, 43_200.0, 86_400.0, 604_800.0)
MEASURED_RUNS = 1_000
QUANTILES = (0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True)
class Numbers:
    sources: SourceCounts
    due: int
    lag_seconds: float
    in_flight: int
    ever: VisitSums
    last_24h: VisitSums
    runs: Mapping[str, int]
    durations: list[float]


class Metrics:
    """Keeps what a counter needs from one reading to the next. Delays count from the first reading on."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._item_id: int | None = None
        self._delays = Delays((0,) * (len(DELAY_BOUNDS) + 1), 0.0)

    async def read(self, context: Context) -> str:
        numbers = await context.store.read(_read, context.clock())
        return "\n".join([*_told(numbers), *_histogram(await self._read_delays(context)), ""])

    async def _read_delays(self, context: Context) -> Delays:
        async with self._lock:
            if self._item_id is None:
                self._item_id = await context.store.read(last_item_id)
            settled, recent, self._item_id = await context.store.read(
                count_delays, self._item_id, DELAY_BOUNDS, context.clock()
            )
            self._delays += settled
            return self._delays + recent


def _read(connection: Connection, now: float) -> Numbers:
    return Numbers(
        sources=count_sources(connection),
        due=count_due(connection, now),
        lag_seconds=read_lag(connection, now),
        in_flight=count_in_flight(connection, now),
        ever=visits_ever(connection),
        last_24h=visits_since(connection, now - DAY_SECONDS),
        runs=count_unfinished_runs(connection),
        durations=run_durations(connection, MEASURED_RUNS),
    )


def _told(numbers: Numbers) -> Iterable[str]:
    sources, ever = numbers.sources, numbers.ever
    yield from _family("headwater_info", "gauge", "The version that answers.", {("version", __version__): 1})
    yield from _family(
        "headwater_sources",
        "gauge",
        "Sources by state.",
        {("state", state): count for state, count in sources.states.items()},
    )
    yield from _family(
        "headwater_sources_needing_attention",
        "gauge",
        "Sources that need their owner: credentials are refused, or an address has moved.",
        {None: sources.needs_attention},
    )
    yield from _family(
        "headwater_sources_failing",
        "gauge",
        "Sources that fail, by kind of failure.",
        {("kind", kind): count for kind, count in sorted(sources.failing.items())},
    )
    yield from _family("headwater_due", "gauge", "Sources that wait for a visit now.", {None: numbers.due})
    yield from _family(
        "headwater_lag_seconds",
        "gauge",
        "How long the source waits that has waited longest.",
        {None: numbers.lag_seconds},
    )
    yield from _family(
        "headwater_in_flight", "gauge", "Sources that are being visited.", {None: numbers.in_flight}
    )
    yield from _family(
        "headwater_visits_total",
        "counter",
        "Visits by outcome.",
        {
            ("outcome", outcome): ever.visits.get(outcome, 0)
            for outcome in ("new", "unchanged", "failed", "skipped")
        },
    )
    yield from _family(
        "headwater_visit_failures_total",
        "counter",
        "Failed visits by kind of failure.",
        {("kind", kind): count for kind, count in sorted(ever.errors.items())},
    )
    yield from _family(
        "headwater_items_total",
        "counter",
        "Items that visits found to be new or changed.",
        {("change", "new"): ever.items_new, ("change", "updated"): ever.items_updated},
    )
    yield from _family("headwater_requests_total", "counter", "Requests of visits.", {None: ever.requests})
    yield from _family(
        "headwater_not_modified_total",
        "counter",
        "Visits that were answered with 304, without a body. Visits that a plan put off are counted nowhere.",
        {None: ever.not_modified},
    )
    yield from _family(
        "headwater_received_bytes_total",
        "counter",
        "Bytes that visits received.",
        {None: ever.bytes_received},
    )
    yield from _family(
        "headwater_saved_bytes_24h",
        "gauge",
        "About how much was not sent again in 24 hours because it was unchanged: visits that found nothing, times "
        "the mean size of those that found something, less what they received.",
        {None: numbers.last_24h.bytes_saved},
    )
    yield from _family(
        "headwater_runs",
        "gauge",
        "Pipeline runs that are not finished, by status.",
        {("status", status): count for status, count in numbers.runs.items()},
    )
    yield from _family(
        "headwater_run_duration_seconds",
        "gauge",
        f"How long the newest {MEASURED_RUNS} completed runs took, by quantile.",
        {
            ("quantile", f"{quantile:g}"): numbers.durations[int(quantile * (len(numbers.durations) - 1))]
            for quantile in QUANTILES
            if numbers.durations
        },
    )


def _histogram(delays: Delays) -> Iterable[str]:
    name = "headwater_discovery_delay_seconds"
    yield f"# HELP {name} How long after their publication items were found."
    yield f"# TYPE {name} histogram"
    so_far = 0
    for bound, count in zip([*(f"{bound:g}" for bound in DELAY_BOUNDS), "+Inf"], delays.counts, strict=True):
        so_far += count
        yield f'{name}_bucket{{le="{bound}"}} {so_far}'
    yield f"{name}_sum {delays.total_seconds:.3f}"
    yield f"{name}_count {so_far}"


def _family(name: str, kind: str, text: str, values: Mapping[tuple[str, str] | None, float]) -> Iterable[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for label, value in values.items():
        labels = f'{{{label[0]}="{_escaped(label[1])}"}}' if label else ""
        yield f"{name}{labels} {value if isinstance(value, int) else f'{value:.6g}'}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

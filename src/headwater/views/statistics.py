"""How often sources publish, and how many visits found something: of one source, and of all."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from headwater.store.reports.statistics import CADENCES, FREQUENCIES, SchedulerStatistics, SourceStatistics
from headwater.views.shape import Shape, Time, with_example
from headwater.wording import iso

_HIT_RATE = "The share of visits that found something new, from 0 to 1; null: no visit yet."


class SourceStatisticsView(BaseModel):
    """How often a source publishes, and how many of its visits found something."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: source_statistics_json(EXAMPLE))

    frequency_type: str = Field(
        description="realtime, high, daily, daily_fixed (about every two days), weekly, monthly or low."
    )
    cadence: str = Field(description="P0 to P6: how often the policy `cadence` visits such a source.")
    check_count: int = Field(description="All its visits.")
    hit_count: int = Field(description="The visits that found something new.")
    hit_rate: float | None = Field(description=_HIT_RATE)
    backoff_until: Time | None = Field(
        description="Until when it waits because of failures; null: it does not."
    )


class SchedulerStatisticsView(BaseModel):
    """How often sources publish, and how many visits found something."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: scheduler_statistics_json(_ALL))

    total_sources: int = Field(description="Sources that were visited at least once, but the removed ones.")
    by_cadence: dict[str, int] = Field(description="Sources by the cadence that their history suggests.")
    by_frequency: dict[str, int] = Field(description="Sources by how often they publish.")
    total_checks: int = Field(description="All visits of these sources.")
    total_hits: int = Field(description="The visits that found something new.")
    hit_rate: float | None = Field(description=_HIT_RATE)
    due_sources: int = Field(description="Sources that wait for a visit now.")
    failing_sources: int = Field(description="Sources whose last visit failed.")
    backoff_sources: int = Field(description="Sources that wait because their last visits failed.")


source_statistics_json: Shape[SourceStatistics] = Shape(
    SourceStatisticsView, backoff_until=lambda statistics: iso(statistics.backoff_until)
)
scheduler_statistics_json: Shape[SchedulerStatistics] = Shape(SchedulerStatisticsView)

EXAMPLE: SourceStatistics = SourceStatistics("daily", "P2", 40, 12, None)
_ALL: SchedulerStatistics = SchedulerStatistics(
    total_sources=224,
    by_cadence=dict(zip(CADENCES, (12, 31, 90, 20, 41, 18, 12), strict=True)),
    by_frequency=dict(zip(FREQUENCIES, (12, 31, 90, 20, 41, 18, 12), strict=True)),
    total_checks=48_210,
    total_hits=9_311,
    due_sources=3,
    failing_sources=6,
    backoff_sources=4,
)

"""A source's story in pictures: when it publishes, how long its items waited, what its visits found."""

from datetime import date, datetime
from typing import Any

from markupsafe import Markup

from headwater.model import Source
from headwater.simulate.what_if import Answer, WhatIf
from headwater.states import next_visit_at
from headwater.store.reports.catalog import VisitRecord, last_visits
from headwater.store.reports.delays import quantile, source_delays
from headwater.web.curves import Curve, curves_chart
from headwater.web.dates import tell_date, tell_weekday, weekdays
from headwater.web.pages.display import read_display
from headwater.web.pages.frame import Page
from headwater.web.plot import Scene, Series, stacked_bars
from headwater.web.rhythm import Dot, day_lanes, week_map
from headwater.wording import duration

DRAWN_DAYS = 7
MOST_VISITS = 500
# Upper ends of the bars that delays are counted in, in seconds; the last bar has none.
DELAY_ENDS = (60, 120, 300, 600, 1_200, 3_600, 10_800, 43_200)


POLICY_LOOKS = {"adaptive": "c1", "cadence": "c3", "interval": "c4"}


async def draw_story(page: Page, source: Source, history: list[float]) -> dict[str, Any]:
    store, now = page.context.store, page.context.clock()
    display = read_display(page.request)
    visits = await store.read(last_visits, source.id, limit=MOST_VISITS)
    delays = await store.read(source_delays, source.id)
    return {
        "heat": week_map(
            history,
            zone=display.zone,
            days=weekdays(page.language),
            now=now,
            title=page.t("When it publishes, by hour and weekday"),
            items=page.t("items"),
        )
        if history
        else None,
        "history_count": len(history),
        "is_utc": display.zone_name == "UTC",
        "delays": _draw_delays(delays, page) if delays else None,
        "delay_count": len(delays),
        "lanes": _draw_visits(visits, source, page),
        "tell_day": lambda at: _tell_day(at, page),
    }


def _tell_day(at: float, page: Page) -> str:
    day = datetime.fromtimestamp(at, page.zone).date()
    year = f" {day.year}" if page.language == "en" else ""
    return f"{tell_date(day, page.language)}{year}"


def _draw_delays(delays: list[float], page: Page) -> Markup:
    """Bars of equal width for classes of growing length, with the median and where 19 of 20 lie."""
    ends = [*DELAY_ENDS, float("inf")]
    begins = [0, *DELAY_ENDS]
    counts = [sum(begin <= each < end for each in delays) for begin, end in zip(begins, ends, strict=True)]
    names = [f"< {duration(end, page.language)}" for end in DELAY_ENDS]
    names.append(f"> {duration(DELAY_ENDS[-1], page.language)}")
    median, most = quantile(delays, 0.5) or 0.0, quantile(delays, 0.95) or 0.0
    return stacked_bars(
        [Series(page.t("Items"), counts)],
        Scene(
            page.t("How long items waited"),
            names,
            [((place + 0.5) / len(names), name) for place, name in enumerate(names)],
            marks=[
                (_place(median), page.t("median {time}", time=duration(median, page.language)), ""),
                (_place(most), page.t("19 of 20: {time}", time=duration(most, page.language)), "dash"),
            ],
        ),
    )


def _place(seconds: float) -> float:
    """Where along the bars a delay lies, from 0 to 1."""
    begins = (0, *DELAY_ENDS)
    number = max(place for place, begin in enumerate(begins) if begin <= seconds)
    end = DELAY_ENDS[number] if number < len(DELAY_ENDS) else 2 * DELAY_ENDS[-1]
    inside = min(1.0, (seconds - begins[number]) / (end - begins[number]))
    return (number + inside) / len(begins)


def _draw_visits(visits: list[VisitRecord], source: Source, page: Page) -> Markup:
    now = page.context.clock()
    dots = [_dot(visit, page) for visit in visits]
    planned = next_visit_at(source)
    if planned is not None and planned > now:
        told = page.t("Next visit {time}", time=f"{datetime.fromtimestamp(planned, page.zone):%H:%M}")
        dots.append(Dot(planned, told, is_planned=True))
    today = datetime.fromtimestamp(now, page.zone).date()

    def tell_day(day: date) -> str:
        return page.t("Today") if day == today else tell_weekday(day, page.language)

    return day_lanes(
        dots,
        zone=page.zone,
        now=now,
        days=DRAWN_DAYS,
        tell_day=tell_day,
        tell_count=lambda count: page.t("{count} new", count=count),
        title=page.t("Visits of the last days"),
    )


def _dot(visit: VisitRecord, page: Page) -> Dot:
    when = f"{datetime.fromtimestamp(visit.started_at, page.zone):%H:%M}"
    if visit.status == "failed":
        return Dot(visit.started_at, f"{when} · {visit.error_message or page.t('failed')}", None)
    found = page.t("{count} new", count=visit.items_new) if visit.items_new else page.t("Nothing new")
    return Dot(visit.started_at, f"{when} · {found}", visit.items_new)


def draw_what_if(answer: Answer, page: Page) -> Markup:
    """Each policy's delay against what it costs; empty where there is too little history."""

    def point(each: WhatIf) -> tuple[float, float]:
        return each.visits_per_day, each.mean_delay_seconds

    curves = [
        Curve(
            now.policy,
            POLICY_LOOKS[now.policy],
            [point(each) for each in answer.curves if each.policy == now.policy],
            point(now),
        )
        for now in answer.policies
    ]
    return curves_chart(
        curves,
        title=page.t("Mean delay against visits a day, by policy"),
        tell_delay=lambda seconds: duration(seconds, page.language),
        tell_visits=lambda visits: page.t("{rate} a day", rate=f"{visits:.3g}"),
    )

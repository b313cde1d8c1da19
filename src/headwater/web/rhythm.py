"""A source's rhythm as pictures: when it publishes in a week, and what its visits of the last days found."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo

from markupsafe import Markup, escape

HOURS = 24
LEVELS = 4


def week_map(
    history: Sequence[float], *, zone: tzinfo, days: Sequence[str], now: float, title: str, items: str
) -> Markup:
    """Hour by weekday in a time zone: the more items, the darker. `items` names what the numbers at the side count."""
    counts = [[0] * HOURS for _ in days]
    for at in history:
        moment = datetime.fromtimestamp(at, zone)
        counts[moment.weekday()][moment.hour] += 1
    peak = max(map(max, counts)) or 1
    most = max(map(sum, counts)) or 1
    current = datetime.fromtimestamp(now, zone)
    parts = [_profile(counts), f'<span class="side">{escape(items)}</span>']
    for row, (day, hours) in enumerate(zip(days, counts, strict=True)):
        cells = "".join(
            _cell(hour, count, peak, day, is_now=(row, hour) == (current.weekday(), current.hour))
            for hour, count in enumerate(hours)
        )
        parts.append(
            f"<span>{escape(day)}</span><svg>{cells}</svg>"
            '<span class="side"><svg class="sum">'
            f'<rect rx="2" height="7" width="{100 * sum(hours) / most:.0f}%"/></svg>{sum(hours)}</span>'
        )
    parts.append(f"<span></span>{_hours(3)}<span></span>")
    return Markup(  # noqa: S704 - numbers and what is escaped
        f'<div class="heat" role="img" aria-label="{escape(title)}">{"".join(parts)}</div>'
    )


def _cell(hour: int, count: int, peak: int, day: str, *, is_now: bool) -> str:
    level = 0 if not count else max(1, -(-LEVELS * count // peak))
    look = f"h{level}" + (" now" if is_now else "")
    return (
        f'<rect class="{look}" x="{hour * 100 / HOURS + 0.2:.2f}%" width="{100 / HOURS - 0.4:.2f}%" y="1" height="18"'
        f' rx="3"><title>{escape(day)} {hour:02}:00 · {count}</title></rect>'
    )


def _profile(counts: Sequence[Sequence[int]]) -> str:
    """All days above each other, as a line over the hours."""
    sums = [sum(day[hour] for day in counts) for hour in range(HOURS)]
    peak = max(sums) or 1
    line = "L".join(
        f"{(hour + 0.5) * 100 / HOURS:.1f} {28 - 26 * count / peak:.1f}" for hour, count in enumerate(sums)
    )
    return (
        '<span></span><svg class="c2 profile" height="30" viewBox="0 0 100 30" preserveAspectRatio="none">'
        f'<path class="area" d="M{50 / HOURS:.1f} 29L{line}L{100 - 50 / HOURS:.1f} 29Z"/>'
        f'<path class="stroke" d="M{line}"/></svg>'
    )


def _hours(every: int, *, edge: bool = False) -> str:
    """The names of the hours, below their cells or, with `edge`, where they begin."""
    shift = 0.0 if edge else 0.5
    names = "".join(
        f'<text x="{(hour + shift) * 100 / HOURS:.2f}%" y="11"'
        f' text-anchor="{"start" if edge and not hour else "middle"}">{hour:02}</text>'
        for hour in range(0, HOURS, every)
    )
    return f'<svg class="hours">{names}</svg>'


@dataclass(frozen=True, slots=True)
class Dot:
    """A visit on a day's line: what it found, or None when it failed; or one that is planned."""

    at: float
    told: str
    items_new: int | None = 0
    is_planned: bool = False


def day_lanes(
    dots: Sequence[Dot],
    *,
    zone: tzinfo,
    now: float,
    days: int,
    tell_day: Callable[[date], str],
    tell_count: Callable[[int], str],
    title: str,
) -> Markup:
    """The visits of the last days, a line for each, today first."""
    today = datetime.fromtimestamp(now, zone).date()
    parts = []
    for back in range(days):
        day = today - timedelta(days=back)
        of_day = [dot for dot in dots if datetime.fromtimestamp(dot.at, zone).date() == day]
        found = sum(dot.items_new or 0 for dot in of_day)
        marks = "".join(_dot(dot, zone) for dot in sorted(of_day, key=lambda dot: dot.at))
        if back == 0:
            place = _share_of_day(now, zone)
            marks += f'<line class="now" x1="{place:.2f}%" x2="{place:.2f}%" y1="0" y2="27"/>'
        grid = "".join(f'<line class="grid" x1="{25 * n}%" x2="{25 * n}%" y1="0" y2="27"/>' for n in range(5))
        parts.append(
            f"<span>{escape(tell_day(day))}</span><svg>{grid}{marks}</svg>"
            f'<span class="side">{escape(tell_count(found)) if of_day else ""}</span>'
        )
    parts.append(f"<span></span>{_hours(6, edge=True)}<span></span>")
    return Markup(  # noqa: S704 - numbers and what is escaped
        f'<div class="lanes" role="img" aria-label="{escape(title)}">{"".join(parts)}</div>'
    )


def _share_of_day(at: float, zone: tzinfo) -> float:
    moment = datetime.fromtimestamp(at, zone)
    return 100 * (moment.hour * 3600 + moment.minute * 60 + moment.second) / 86_400


def _dot(dot: Dot, zone: tzinfo) -> str:
    x = f"{_share_of_day(dot.at, zone):.2f}%"
    told = f"<title>{escape(dot.told)}</title>"
    if dot.is_planned:
        return f'<circle class="plan" cx="{x}" cy="13.5" r="4">{told}</circle>'
    if dot.items_new is None:
        return (
            f'<g>{told}<svg x="{x}" y="13.5" overflow="visible">'
            '<path class="failed" d="M-4 -4L4 4M4 -4L-4 4"/></svg></g>'
        )
    if not dot.items_new:
        return f'<circle class="none" cx="{x}" cy="13.5" r="3.6">{told}</circle>'
    return (
        f'<g>{told}<circle class="v" cx="{x}" cy="13.5" r="7.5"/>'
        f'<text class="in" x="{x}" y="17">{min(dot.items_new, 99)}</text></g>'
    )

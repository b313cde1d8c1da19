"""What-if curves: delay against visits a day, a line for each policy, both on scales on which twice is one step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log10

from markupsafe import Markup, escape

HEIGHT = 190
_VISITS = (0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256)
_DELAYS = (1, 5, 20, 60, 180, 600, 1_800, 3_600, 10_800, 28_800, 86_400, 345_600)


@dataclass(frozen=True, slots=True)
class Curve:
    """A policy's points: visits a day and seconds of delay. `now` is the point that is in force."""

    name: str
    look: str
    points: Sequence[tuple[float, float]]
    now: tuple[float, float]


def curves_chart(
    curves: Sequence[Curve],
    *,
    title: str,
    tell_delay: Callable[[float], str],
    tell_visits: Callable[[float], str],
) -> Markup:
    shown = [point for curve in curves for point in curve.points if min(point) > 0]
    if len(shown) < 2:
        return Markup("")
    left, right = _range([x for x, _ in shown], _VISITS)
    low, high = _range([y for _, y in shown], _DELAYS)

    def place(point: tuple[float, float]) -> tuple[float, float]:
        x, y = point
        return 100 * _share(x, left, right), HEIGHT * (1 - _share(y, low, high))

    parts = [
        f'<line class="{"base" if delay == low else "grid"}" x1="0" x2="100%" y1="{(y := place((left, delay))[1]):.1f}"'
        f' y2="{y:.1f}"/><text x="-8" y="{y + 4:.1f}" text-anchor="end">{escape(tell_delay(delay))}</text>'
        for delay in _DELAYS
        if low <= delay <= high
    ]
    parts += [
        f'<text class="{"odd" if number % 2 else ""}" x="{place((visits, low))[0]:.2f}%" y="{HEIGHT + 16}"'
        f' text-anchor="middle">{visits:g}</text>'
        for number, visits in enumerate(each for each in _VISITS if left <= each <= right)
    ]
    for curve in curves:
        parts += _draw(curve, place, tell_delay, tell_visits)
    return Markup(  # noqa: S704 - numbers, our own classes and what is escaped
        f'<div class="chart"><svg height="{HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg></div>"
    )


def _draw(
    curve: Curve,
    place: Callable[[tuple[float, float]], tuple[float, float]],
    tell_delay: Callable[[float], str],
    tell_visits: Callable[[float], str],
) -> list[str]:
    """The line in a drawing that is stretched, and its points above it, which tell what they stand for."""
    points = sorted({point for point in curve.points if min(point) > 0})
    line = "L".join(f"{10 * x:.1f} {y:.1f}" for x, y in map(place, points))
    parts = [
        f'<svg x="0" y="0" width="100%" height="{HEIGHT}" viewBox="0 0 1000 {HEIGHT}" preserveAspectRatio="none">'
        f'<path class="stroke {curve.look}" d="M{line}"/></svg>'
    ]
    for point in points:
        x, y = place(point)
        told = f"{curve.name}: {tell_visits(point[0])}, {tell_delay(point[1])}"
        size = 5 if point == curve.now else 3.5
        parts.append(
            f'<circle class="fill {curve.look}" cx="{x:.2f}%" cy="{y:.1f}" r="{size}">'
            f"<title>{escape(told)}</title></circle>"
        )
    return parts


def _range(values: Sequence[float], steps: Sequence[float]) -> tuple[float, float]:
    low = max((each for each in steps if each <= min(values)), default=steps[0])
    high = min((each for each in steps if each >= max(values) and each > low), default=steps[-1])
    return low, max(high, 2 * low)


def _share(value: float, low: float, high: float) -> float:
    return min(1.0, max(0.0, (log10(value) - log10(low)) / (log10(high) - log10(low))))

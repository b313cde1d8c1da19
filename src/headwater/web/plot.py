"""Charts with axes, as SVG text made on the server: pages need no library, and their policy no exception.

Places along x are in percent, so that a chart fills its card; places along y and all text are in pixels, so that text
never scales. Colours and lines come from static/charts.css by class. Each point in time has a strip that tells its
values when the mouse is over it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, log10

from markupsafe import Markup, escape

HEIGHT = 190
GRID_LINES = 4
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
# Where the lines of a scale of durations may be, in seconds.
_DURATIONS = (1, 5, 20, 120, 600, 1_800, 7_200, 28_800, 86_400, 345_600, 1_209_600)


@dataclass(frozen=True, slots=True)
class Series:
    """One line, or one part of all bars. A value may be missing. `look` is a class of the stylesheet: c1 … c5."""

    name: str
    values: Sequence[float | None]
    look: str = "c1"
    is_filled: bool = False
    is_dashed: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """What the series of a chart share: its name, what each place along x is called, and where ticks are."""

    title: str
    places: Sequence[str]
    ticks: Sequence[tuple[float, str]]  # from 0 to 1 along x
    tell: Callable[[float], str] = "{:,.0f}".format
    goal: tuple[float, str] | None = None
    height: int = HEIGHT
    marks: Sequence[tuple[float, str, str]] = field(default=())  # from 0 to 1 along x, text, class


def stacked_bars(series: Sequence[Series], scene: Scene) -> Markup:
    """Bars from the first series at the bottom to the last on top."""
    count = len(scene.places)
    sums = [sum(each.values[place] or 0 for each in series) for place in range(count)]
    top, lines = linear_scale(max([*sums, scene.goal[0] if scene.goal else 0]), scene.tell)
    wide = 100 / max(count, 1)
    parts = []
    for place in range(count):
        floor_at = 0.0
        for each in series:
            value = each.values[place] or 0
            if not value:
                continue
            height = scene.height * value / top
            floor_at += height
            parts.append(
                f'<rect class="fill {each.look}" x="{place * wide + wide * 0.1:.2f}%" y="{scene.height - floor_at:.1f}"'
                f' width="{wide * 0.8:.2f}%" height="{height:.1f}"/>'
            )
    return _chart(scene, lines, "".join(parts), series, lambda value: scene.height * (1 - value / top))


def lines_chart(series: Sequence[Series], scene: Scene) -> Markup:
    """Lines over a scale that begins at zero."""
    peak = max([value for each in series for value in each.values if value] or [0])
    top, lines = linear_scale(max(peak, scene.goal[0] if scene.goal else 0), scene.tell)

    def y(value: float) -> float:
        return scene.height * (1 - value / top)

    return _chart(scene, lines, _lines(series, scene, y), series, y)


def durations_chart(series: Sequence[Series], scene: Scene) -> Markup:
    """Lines over a scale of times on which twice as long is always the same step up."""
    values = [value for each in series for value in each.values if value]
    values += [scene.goal[0]] if scene.goal else []
    low, high = _duration_range(values)

    def y(value: float) -> float:
        share = (log10(max(value, low)) - log10(low)) / (log10(high) - log10(low))
        return scene.height * (1 - min(share, 1.0))

    lines = [(scene.tell(each), y(each)) for each in _DURATIONS if low <= each <= high]
    return _chart(scene, lines, _lines(series, scene, y, joined=True), series, y)


def _duration_range(values: Sequence[float]) -> tuple[float, float]:
    lowest, highest = min(values, default=60.0), max(values, default=3_600.0)
    low = max((each for each in _DURATIONS if each <= lowest), default=_DURATIONS[0])
    high = min((each for each in _DURATIONS if each >= highest and each > low), default=_DURATIONS[-1])
    return float(low), float(max(high, 2 * low))


def linear_scale(peak: float, tell: Callable[[float], str]) -> tuple[float, list[tuple[str, float]]]:
    """A round number above the peak, and lines with their names; their places are set by the caller."""
    rough = max(peak, 1.0) / GRID_LINES
    size = 10 ** floor(log10(rough))
    step = next(each * size for each in _STEPS if each * size >= rough)
    step = max(step, 1.0)
    count = max(1, ceil(max(peak, 1.0) / step))
    top = step * count
    return top, [(tell(step * number), 1 - number / count) for number in range(count + 1)]


def _lines(
    series: Sequence[Series], scene: Scene, y: Callable[[float], float], *, joined: bool = False
) -> str:
    """Paths in their own drawing that is stretched, with lines that are not. `joined`: over gaps too."""
    count = max(len(scene.places) - 1, 1)
    paths = []
    for each in series:
        for points in _unbroken(each.values, joined=joined):
            line = "L".join(f"{1000 * place / count:.1f} {y(value):.1f}" for place, value in points)
            first, last = points[0][0], points[-1][0]
            if each.is_filled:
                paths.append(
                    f'<path class="area {each.look}" d="M{1000 * first / count:.1f} {scene.height}L{line}'
                    f'L{1000 * last / count:.1f} {scene.height}Z"/>'
                )
            dash = " dash" if each.is_dashed else ""
            paths.append(
                f'<path class="stroke {each.look}{dash}" d="M{line}{"h1" if len(points) == 1 else ""}"/>'
            )
    return (
        f'<svg x="0" y="0" width="100%" height="{scene.height}" viewBox="0 0 1000 {scene.height}"'
        f' preserveAspectRatio="none">{"".join(paths)}</svg>'
    )


def _unbroken(values: Sequence[float | None], *, joined: bool) -> list[list[tuple[int, float]]]:
    """Runs of values without a gap between them; one run of all if they are `joined`."""
    runs: list[list[tuple[int, float]]] = []
    before: float | None = None
    for place, value in enumerate(values):
        if value is not None:
            if before is None and not (joined and runs):
                runs.append([])
            runs[-1].append((place, value))
        before = value
    return runs


def _chart(
    scene: Scene,
    lines: Sequence[tuple[str, float]],
    drawn: str,
    series: Sequence[Series],
    y: Callable[[float], float],
) -> Markup:
    """The axes around what is drawn, the goal above it, and what the mouse is told."""
    parts = []
    for name, place in lines:
        at = place * scene.height if place <= 1 else place
        base = "base" if at >= scene.height - 0.5 else "grid"
        parts.append(
            f'<line class="{base}" x1="0" x2="100%" y1="{at:.1f}" y2="{at:.1f}"/>'
            f'<text x="-8" y="{at + 4:.1f}" text-anchor="end">{escape(name)}</text>'
        )
    parts.append(drawn)
    if scene.goal is not None:
        at = y(scene.goal[0])
        parts.append(
            f'<line class="goal" x1="0" x2="100%" y1="{at:.1f}" y2="{at:.1f}"/>'
            f'<text class="goal" x="100%" y="{at - 5:.1f}" text-anchor="end">{escape(scene.goal[1])}</text>'
        )
    parts += [_mark(*mark, scene.height) for mark in scene.marks]
    parts += [
        f'<text class="{"odd" if number % 2 else ""}" x="{100 * place:.2f}%" y="{scene.height + 16}"'
        f' text-anchor="{_anchor(place)}">{escape(name)}</text>'
        for number, (place, name) in enumerate(scene.ticks)
    ]
    parts += _strips(scene, series)
    return Markup(  # noqa: S704 - numbers, our own classes and what is escaped
        f'<div class="chart"><svg height="{scene.height}" role="img" aria-label="{escape(scene.title)}">'
        f"{''.join(parts)}</svg></div>"
    )


def _mark(place: float, name: str, look: str, height: int) -> str:
    end = place > 0.7
    return (
        f'<line class="mark {look}" x1="{100 * place:.2f}%" x2="{100 * place:.2f}%" y1="-4" y2="{height}"/>'
        f'<text class="strong" x="{100 * place:.2f}%" dx="{-6 if end else 6}" y="{22 if look else 6}"'
        f' text-anchor="{"end" if end else "start"}">{escape(name)}</text>'
    )


def _anchor(place: float) -> str:
    return "start" if place <= 0.02 else "end" if place >= 0.98 else "middle"


def _strips(scene: Scene, series: Sequence[Series]) -> list[str]:
    wide = 100 / max(len(scene.places), 1)
    found = []
    for place, name in enumerate(scene.places):
        told = [name]
        for each in series:
            value = each.values[place] if place < len(each.values) else None
            if value is not None:
                told.append(f"{each.name}: {scene.tell(value)}")
        found.append(
            f'<rect class="hit" x="{place * wide:.2f}%" y="0" width="{wide:.2f}%" height="{scene.height}">'
            f"<title>{escape(chr(10).join(told))}</title></rect>"
        )
    return found

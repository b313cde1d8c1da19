"""Draws delay against requests as an SVG picture, with nothing but text."""

from collections.abc import Sequence
from html import escape
from math import ceil, floor, log10

from headwater.simulate.results import Result

_WIDTH, _HEIGHT = 760, 480
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 150, 40, 56
# Told apart in grey and by the colour-blind, too; ours is the strongest.
_COLOURS = {
    "adaptive": "#0b57d0",
    "cadence": "#b3261e",
    "square-root": "#146c2e",
    "fixed": "#5f6368",
    "miniflux": "#9334e6",
    "newsblur": "#e37400",
    "commafeed": "#007b83",
    "clairvoyant": "#9aa0a6",
}
_MARKS = (1.0, 2.0, 5.0)
_LEAST_MINUTES = 0.1


def draw_curves(results: Sequence[Result], title: str, x_label: str, y_label: str) -> str:
    """Mean delay in minutes over visits per source and day, both logarithmic: one line per policy."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for result in results:
        if result.visits_per_day > 0:
            point = (result.visits_per_day, max(result.mean_delay / 60.0, _LEAST_MINUTES))
            curves.setdefault(result.policy, []).append(point)
    points = [point for curve in curves.values() for point in curve] or [(1.0, 1.0)]
    xs = _range([x for x, _ in points])
    ys = _range([y for _, y in points])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"'
        f' aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="13">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="24" font-size="15" font-weight="600" fill="#202124">{escape(title)}</text>',
    ]
    parts += _grid(xs, ys, x_label, y_label)
    labels = []
    for policy, curve in curves.items():
        colour = _COLOURS.get(policy, "#202124")
        placed = [(_x(x, xs), _y(y, ys)) for x, y in sorted(curve)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        width = 3 if policy == "adaptive" else 1.8
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.4" fill="{colour}"/>' for x, y in placed]
        labels.append((placed[-1][1], policy, colour))
    parts += _place_labels(labels)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = log10(min(values)) - 0.05, log10(max(values)) + 0.05
    return (low, high) if high - low > 0.2 else (low - 0.1, high + 0.1)


def _x(value: float, span: tuple[float, float]) -> float:
    return _LEFT + (log10(value) - span[0]) / (span[1] - span[0]) * (_WIDTH - _LEFT - _RIGHT)


def _y(value: float, span: tuple[float, float]) -> float:
    return _HEIGHT - _BOTTOM - (log10(value) - span[0]) / (span[1] - span[0]) * (_HEIGHT - _TOP - _BOTTOM)


def _ticks(span: tuple[float, float]) -> list[float]:
    decades = range(floor(span[0]), ceil(span[1]) + 1)
    ticks = [mark * 10.0**decade for decade in decades for mark in _MARKS]
    return [tick for tick in ticks if span[0] <= log10(tick) <= span[1]]


def _grid(xs: tuple[float, float], ys: tuple[float, float], x_label: str, y_label: str) -> list[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = []
    for tick in _ticks(xs):
        x = _x(tick, xs)
        parts.append(f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}" stroke="#e8eaed"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle" fill="#3c4043">{tick:g}</text>'
        )
    for tick in _ticks(ys):
        y = _y(tick, ys)
        parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#e8eaed"/>')
        parts.append(
            f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#3c4043">{tick:g}</text>'
        )
    middle = (_TOP + bottom) / 2
    parts.append(
        f'<text x="{(_LEFT + right) / 2}" y="{_HEIGHT - 14}" text-anchor="middle" fill="#202124">'
        f"{escape(x_label)}</text>"
    )
    parts.append(
        f'<text x="18" y="{middle}" text-anchor="middle" fill="#202124" transform="rotate(-90 18 {middle})">'
        f"{escape(y_label)}</text>"
    )
    return parts


def _place_labels(labels: Sequence[tuple[float, str, str]]) -> list[str]:
    """Each name beside its curve's end, pushed apart so that none covers another."""
    parts = []
    lowest = -100.0
    for y, policy, colour in sorted(labels):
        lowest = max(y + 4, lowest + 16)
        weight = "600" if policy == "adaptive" else "400"
        parts.append(
            f'<text x="{_WIDTH - _RIGHT + 10}" y="{lowest:.1f}" fill="{colour}" font-weight="{weight}">'
            f"{escape(policy)}</text>"
        )
    return parts

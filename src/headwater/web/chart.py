"""Charts as SVG text, made on the server so that pages need no library."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

HEIGHT = 60
STEP = 10


def bars(values: Sequence[int], *, title: str, name: str = "bars") -> Markup:
    """A bar a value, scaled to the largest. The title is what screen readers and the mouse get."""
    peak = max(values, default=0) or 1
    # Nothing but numbers and what is escaped: put together as plain text, many times as fast as `Markup.format`.
    parts = "".join(
        f'<rect x="{position * STEP}" y="{HEIGHT - HEIGHT * value / peak:.1f}" width="{STEP - 2}" '
        f'height="{HEIGHT * value / peak:.1f}"><title>{value:d}</title></rect>'
        for position, value in enumerate(values)
        if value
    )
    return Markup(  # noqa: S704 - as said
        f'<svg class="{name}" viewBox="0 0 {STEP * max(len(values), 1)} {HEIGHT}" role="img" '
        f'preserveAspectRatio="none"><title>{escape(title)}</title>{parts}</svg>'
    )


def labelled_bars(values: Sequence[tuple[str, int]], *, title: str) -> Markup:
    """Lying bars, each with its name before and its number behind."""
    row, left, width = 20, 80, 300
    peak = max((value for _, value in values), default=0) or 1
    parts = [
        Markup(
            '<text x="0" y="{y}">{n}</text><rect x="{l}" y="{top}" width="{w:.1f}" height="{h}" rx="2"/>'
            '<text x="{after:.1f}" y="{y}">{v}</text>'
        ).format(
            y=row * place + 14,
            n=name,
            l=left,
            top=row * place + 3,
            w=width * value / peak,
            h=row - 6,
            after=left + width * value / peak + 6,
            v=value,
        )
        for place, (name, value) in enumerate(values)
    ]
    return Markup(
        '<svg class="labelled" viewBox="0 0 {w} {h}" role="img"><title>{t}</title>{p}</svg>'
    ).format(w=left + width + 60, h=row * len(values), t=title, p=Markup("").join(parts))


def spark(values: Sequence[int], *, title: str) -> Markup:
    """The same, small: for a row of a table."""
    return bars(values, title=title, name="spark")


def heat(counts: Sequence[Sequence[int]], *, days: Sequence[str], title: str) -> Markup:
    """Hour by weekday: the more, the darker. `counts` has a row of 24 hours for each of `days`."""
    side, left, top = 22, 44, 16
    peak = max((count for row in counts for count in row), default=0) or 1
    parts = [
        Markup('<text x="{x}" y="11" text-anchor="middle">{h}</text>').format(
            x=left + side * hour + side // 2, h=hour
        )
        for hour in range(0, 24, 3)
    ]
    for row, (day, hours) in enumerate(zip(days, counts, strict=True)):
        parts.append(Markup('<text x="0" y="{y}">{d}</text>').format(y=top + side * row + 15, d=day))
        parts += [
            Markup(
                '<rect x="{x}" y="{y}" width="{w}" height="{w}" rx="3" fill-opacity="{o:.2f}"><title>{t}</title></rect>'
            ).format(
                x=left + side * hour,
                y=top + side * row,
                w=side - 2,
                o=0.07 + 0.93 * count / peak if count else 0.07,
                t=f"{day} {hour:02}:00 · {count}",
            )
            for hour, count in enumerate(hours)
        ]
    return Markup('<svg class="heat" viewBox="0 0 {w} {h}" role="img"><title>{t}</title>{p}</svg>').format(
        w=left + 24 * side, h=top + side * len(days), t=title, p=Markup("").join(parts)
    )


@dataclass(frozen=True, slots=True)
class Span:
    """Something that lasted, in one of the states a step can be in."""

    name: str
    begin: float
    end: float
    state: str


def timeline(spans: Sequence[Span], *, title: str) -> Markup:
    """Spans of time under each other, on one scale."""
    row, left, width = 22, 170, 600
    first = min(span.begin for span in spans)
    whole = max(max(span.end for span in spans) - first, 0.001)
    parts = []
    for place, span in enumerate(spans):
        length = max(width * (span.end - span.begin) / whole, 2)
        parts.append(
            Markup(
                '<text x="0" y="{y}">{n}</text>'
                '<rect class="{s}" x="{x:.1f}" y="{top}" width="{w:.1f}" height="{h}" rx="3"><title>{t}</title></rect>'
            ).format(
                y=row * place + 15,
                n=span.name,
                s=span.state,
                x=min(left + width * (span.begin - first) / whole, left + width - 2),
                top=row * place + 3,
                w=length,
                h=row - 6,
                t=f"{span.name}: {span.end - span.begin:.1f} s",
            )
        )
    return Markup(
        '<svg class="timeline" viewBox="0 0 {w} {h}" role="img"><title>{t}</title>{p}</svg>'
    ).format(w=left + width, h=row * len(spans), t=title, p=Markup("").join(parts))


def dots(
    times: Sequence[tuple[float, str]], *, begin: float, end: float, ticks: Sequence[str], title: str
) -> Markup:
    """Moments on a line from `begin` to `end`, each with its name; `ticks` are written below, evenly apart."""
    width, middle = 640, 16
    span = max(end - begin, 0.001)
    parts = [Markup('<line class="axis" x1="0" x2="{w}" y1="{y}" y2="{y}"/>').format(w=width, y=middle)]
    parts += [
        Markup('<text x="{x:.0f}" y="42" text-anchor="{a}">{t}</text>').format(
            x=width * place / max(len(ticks) - 1, 1),
            a="start" if place == 0 else "end" if place == len(ticks) - 1 else "middle",
            t=text,
        )
        for place, text in enumerate(ticks)
    ]
    parts += [
        Markup('<circle cx="{x:.1f}" cy="{y}" r="6"><title>{t}</title></circle>').format(
            x=8 + (width - 16) * min(max((at - begin) / span, 0.0), 1.0), y=middle, t=name
        )
        for at, name in times
    ]
    return Markup('<svg class="dots" viewBox="0 0 {w} 48" role="img"><title>{t}</title>{p}</svg>').format(
        w=width, t=title, p=Markup("").join(parts)
    )

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


@dataclass(frozen=True, slots=True)
class Span:
    """Something that lasted, in one of the states a step can be in."""

    name: str
    begin: float
    end: float
    state: str


def timeline(spans: Sequence[Span], *, title: str) -> Markup:
    """Spans of time under each other, on one scale, with their lengths behind."""
    first = min(span.begin for span in spans)
    whole = max(max(span.end for span in spans) - first, 0.001)
    rows = [_span(span, first, whole) for span in spans]
    ticks = "".join(
        f'<text x="{25 * part}%" y="12" text-anchor="{"start" if not part else "end" if part == 4 else "middle"}">'
        f"{escape(_seconds(whole * part / 4))}</text>"
        for part in range(5)
    )
    rows.append(f'<span></span><svg class="ticks" height="16">{ticks}</svg><span></span>')
    return Markup(  # noqa: S704 - numbers and what is escaped
        f'<div class="gantt" role="img" aria-label="{escape(title)}">{"".join(rows)}</div>'
    )


def _span(span: Span, first: float, whole: float) -> str:
    begin, wide = 100 * (span.begin - first) / whole, 100 * (span.end - span.begin) / whole
    grid = "".join(f'<line class="grid" x1="{25 * n}%" x2="{25 * n}%" y1="0" y2="30"/>' for n in range(5))
    told = _seconds(span.end - span.begin)
    return (
        f'<span>{escape(span.name)}</span><svg height="30">{grid}<rect class="{escape(span.state)}"'
        f' x="{min(begin, 99.5):.2f}%" width="{max(wide, 0.5):.2f}%" y="8" height="14" rx="3">'
        f'<title>{escape(span.name)}: {told}</title></rect></svg><span class="r">{told}</span>'
    )


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def spark_line(values: Sequence[float]) -> Markup:
    """A line without axes, for a small card."""
    peak = max(values, default=0) or 1
    count = max(len(values) - 1, 1)
    line = "L".join(
        f"{100 * place / count:.1f} {24 - 22 * value / peak:.1f}" for place, value in enumerate(values)
    )
    return Markup(  # noqa: S704 - numbers
        '<svg class="c1" height="26" viewBox="0 0 100 26" preserveAspectRatio="none" aria-hidden="true">'
        f'<path class="area" d="M0 26L{line}L100 26Z"/><path class="stroke" d="M{line}"/></svg>'
    )


def meter(share: float, *, tick: float | None = None) -> Markup:
    """A bar filled to a share, with a mark where it should be."""
    mark = (
        f'<rect class="tick" x="{100 * tick:.1f}%" y="0" width="2" height="14"/>' if tick is not None else ""
    )
    return Markup(  # noqa: S704 - numbers
        '<svg class="meter c1" height="14" aria-hidden="true">'
        '<rect class="track" y="4" width="100%" height="6" rx="3"/>'
        f'<rect class="fill" y="4" width="{100 * share:.1f}%" height="6" rx="3"/>{mark}</svg>'
    )


def shares(parts: Sequence[tuple[str, int]]) -> Markup:
    """A whole divided into parts, each in its colour."""
    whole = sum(count for _, count in parts) or 1
    at, drawn = 0.0, ""
    for look, count in parts:
        if count:
            width = 100 * count / whole
            shown = max(width - 0.6, 0.8)
            drawn += f'<rect class="fill {look}" x="{at:.2f}%" y="4" width="{shown:.2f}%" height="6" rx="2"/>'
            at += width
    return Markup(f'<svg class="meter" height="14" aria-hidden="true">{drawn}</svg>')  # noqa: S704 - numbers


def progress_line(parts: Sequence[tuple[str, int]], whole: int) -> Markup:
    """How much of a whole is done, by how it ended; the rest is empty."""
    at, drawn = 0.0, '<rect class="track" width="100%" height="10" rx="5"/>'
    for look, count in parts:
        wide = 100 * count / max(whole, 1)
        drawn += f'<rect class="fill {escape(look)}" x="{at:.2f}%" width="{wide:.2f}%" height="10"/>'
        at += wide
    return Markup(f'<svg class="bar-line" height="10" aria-hidden="true">{drawn}</svg>')  # noqa: S704

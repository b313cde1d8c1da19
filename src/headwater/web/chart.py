"""Charts as SVG text, made on the server so that pages need no library."""

from collections.abc import Sequence

from markupsafe import Markup, escape

HEIGHT = 60
STEP = 10


def bars(values: Sequence[int], *, title: str) -> Markup:
    """A bar a value, scaled to the largest. The title is what screen readers and the mouse get."""
    peak = max(values, default=0) or 1
    # Nothing but numbers: put together as plain text, which is many times as fast as `Markup.format`.
    parts = "".join(
        f'<rect x="{position * STEP}" y="{HEIGHT - HEIGHT * value / peak:.1f}" width="{STEP - 2}" '
        f'height="{HEIGHT * value / peak:.1f}"><title>{value:d}</title></rect>'
        for position, value in enumerate(values)
        if value
    )
    return Markup(
        '<svg class="bars" viewBox="0 0 {w} {h}" role="img" preserveAspectRatio="none">{t}{b}</svg>'
    ).format(
        w=STEP * max(len(values), 1),
        h=HEIGHT,
        t=Markup("<title>{}</title>").format(escape(title)),
        b=Markup(parts),  # noqa: S704 - numbers
    )


def spark(values: Sequence[int], *, title: str) -> Markup:
    """The same, small: for a row of a table."""
    return Markup(str(bars(values, title=title)).replace('class="bars"', 'class="spark"', 1))  # noqa: S704 - ours


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

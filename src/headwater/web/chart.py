"""Charts as SVG text, made on the server so that pages need no library."""

from collections.abc import Sequence

from markupsafe import Markup, escape

HEIGHT = 60
STEP = 10


def bars(values: Sequence[int], *, title: str) -> Markup:
    """A bar a value, scaled to the largest. The title is what screen readers and the mouse get."""
    peak = max(values, default=0) or 1
    parts = [
        Markup('<rect x="{x}" y="{y:.1f}" width="{w}" height="{h:.1f}"><title>{v}</title></rect>').format(
            x=position * STEP,
            y=HEIGHT - HEIGHT * value / peak,
            w=STEP - 2,
            h=HEIGHT * value / peak,
            v=value,
        )
        for position, value in enumerate(values)
        if value
    ]
    return Markup(
        '<svg class="bars" viewBox="0 0 {w} {h}" role="img" preserveAspectRatio="none">{t}{b}</svg>'
    ).format(
        w=STEP * max(len(values), 1),
        h=HEIGHT,
        t=Markup("<title>{}</title>").format(escape(title)),
        b=Markup("").join(parts),
    )

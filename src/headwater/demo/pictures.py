"""Drawn landscapes that the demo's articles carry: hills, a sun and water, in the colours of a number. Pure."""

import re

PATH = re.compile(r"pictures/(\d{1,3})\.svg")
COUNT = 12
_SKIES = ("#f0d8b0", "#cfe3e8", "#1f3347", "#e7e2d4")
_HILLS = (("#9ab7ad", "#5f8f72"), ("#7fa3b0", "#3f6f63"), ("#3b5b78", "#2b4a4f"))
_WATERS = ("#6fb1c4", "#4f93b8", "#d89a5b")


def picture_address(number: int) -> str:
    """Where the picture of a number is, at the publisher."""
    return f"/pictures/{number % COUNT}.svg"


def draw(number: int) -> str:
    """The picture of a number."""
    sky, water = _SKIES[number % len(_SKIES)], _WATERS[number % len(_WATERS)]
    far, near = _HILLS[number % len(_HILLS)]
    sun = 120 + number * 97 % 420
    peak = 90 + number * 53 % 70
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 360" width="640" height="360">'
        f'<rect width="640" height="360" fill="{sky}"/><circle cx="{sun}" cy="84" r="38" fill="#fbf3dc"/>'
        f'<path d="M0 210 L150 {peak} L270 190 L400 {peak + 20} L520 180 L640 130 V360 H0Z" fill="{far}"/>'
        f'<path d="M0 250 Q160 190 320 240 T640 220 V360 H0Z" fill="{near}"/>'
        f'<path d="M280 360 Q420 320 360 280 Q320 255 440 244 L500 244 Q420 262 470 290 Q540 325 470 360Z"'
        f' fill="{water}"/></svg>'
    )

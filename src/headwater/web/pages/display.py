"""How a visitor wants pages to look: colours, density, size of text, time zone. Remembered in cookies.

A link with `?theme=dark` changes one of them. The time zone is told by the browser (static/app.js), or chosen by
`?zone=UTC`; without either, times are in UTC.
"""

from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from fastapi import Request, Response

from headwater.model import Json

COOKIE_START: Final = "headwater_"
YEAR_SECONDS = 31_536_000
# What can be chosen; the first is the default.
CHOICES: Final = {
    "theme": ("auto", "light", "dark"),
    "density": ("normal", "compact", "relaxed"),
    "size": ("normal", "small", "large"),
}
LONGEST_ZONE = 60  # characters
# Parts of an address that change how pages look, not what they show.
SWITCHES: Final = (*CHOICES, "language")


@dataclass(frozen=True, slots=True)
class Display:
    theme: str = "auto"
    density: str = "normal"
    size: str = "normal"
    zone: tzinfo = UTC
    zone_name: str = "UTC"


def read_display(request: Request, preferences: Json | None = None) -> Display:
    """What the address asks for, else what this browser remembers, else the user's preferences, else the default."""
    chosen = {name: _choice(request, name, preferences or {}) for name in CHOICES}
    zone_name = request.query_params.get("zone") or request.cookies.get(COOKIE_START + "zone", "")
    zone = _zone(zone_name)
    return Display(**chosen, zone=zone or UTC, zone_name=zone_name if zone else "UTC")


def remember_display(request: Request, response: Response) -> None:
    """Keep what the address asks for."""
    for name, choices in CHOICES.items():
        wanted = request.query_params.get(name)
        if wanted in choices:
            response.set_cookie(COOKIE_START + name, wanted, samesite="lax", max_age=YEAR_SECONDS)


def _choice(request: Request, name: str, preferences: Json) -> str:
    wanted = (
        request.query_params.get(name),
        request.cookies.get(COOKIE_START + name),
        preferences.get(name),
    )
    return next((each for each in wanted if each in CHOICES[name]), CHOICES[name][0])


def _zone(name: str) -> tzinfo | None:
    if not name or len(name) > LONGEST_ZONE:
        return None
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # not a name of a zone, or not one that is known here
        return None

"""Subtitles (WebVTT and SubRip) as segments of a transcript. Pure, and linear in the text."""

import re
from dataclasses import dataclass

from headwater.formats.html import plain_text

MOST_SEGMENTS = 100_000
_TIME = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})"
_TIMES = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}")
_MARKS = re.compile(r"<[^<>]{0,200}>")  # voices, classes, times of single words


@dataclass(frozen=True, slots=True)
class Segment:
    start: float
    end: float
    text: str


def read_subtitles(data: bytes) -> list[Segment]:
    """What is said when. Automatic captions show each line twice, once as it rolls up: it is told once."""
    found: list[Segment] = []
    before: set[str] = set()
    for block in re.split(
        r"\n\s*\n", data.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
    ):
        lines = block.split("\n")
        place = next((place for place, line in enumerate(lines[:3]) if "-->" in line), None)
        times = _TIMES.match(lines[place]) if place is not None else None
        if place is None or times is None:
            continue
        said = [text for line in lines[place + 1 :] if (text := plain_text(_MARKS.sub("", line)))]
        fresh = [line for line in said if line not in before]
        before = set(said)
        if fresh and len(found) < MOST_SEGMENTS:
            parts = times.groups()
            found.append(Segment(_seconds(parts[:4]), _seconds(parts[4:]), " ".join(fresh)))
    return found


def _seconds(parts: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, fraction = parts
    return round(
        int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds or 0) + float(f"0.{fraction}"), 3
    )

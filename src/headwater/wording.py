"""Times in plain words, in either language: the same on the terminal and on the page; and for machines. Pure."""

from datetime import datetime, timedelta

from headwater.language import Language, translate

NOTHING = "–"  # where there is no value to show

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - in UTC, which it need not say
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def ago(at: float | None, now: float, language: Language | None = None) -> str:
    """How long ago, or in how long."""
    if at is None:
        return NOTHING
    template = translate("{time} ago" if now >= at else "in {time}", language)
    return template.format(time=duration(abs(now - at), language))


def duration(seconds: float, language: Language | None = None) -> str:
    """A length of time in the largest unit of which there are two."""
    unit, length = next((each for each in _UNITS if seconds >= 2 * each[1]), _UNITS[-1])
    return f"{seconds / length:.0f} {translate(unit, language)}"


def iso(at: float | None) -> str | None:
    """A time for machines: ISO 8601 in UTC, to the millisecond."""
    if at is None:
        return None
    return (_EPOCH + timedelta(seconds=at)).isoformat(
        "T", "milliseconds"
    ) + "Z"  # lists have thousands of them

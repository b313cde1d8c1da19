"""Times, sizes and states in plain words, in either language: the same on the terminal and on the page. Pure."""

from datetime import datetime, timedelta

from headwater.language import Language, translate

NOTHING = "–"  # where there is no value to show

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - in UTC, which it need not say
_UNITS = (
    ("years", 31_557_600),
    ("months", 2_629_800),
    ("d", 86_400),
    ("h", 3_600),
    ("min", 60),
    ("s", 1),
)
_SIZES = (("GB", 10**9), ("MB", 10**6), ("kB", 10**3))
_FREQUENCIES = {
    "realtime": "many a day",
    "high": "twice a day",
    "daily": "daily",
    "daily_fixed": "every 2 days",
    "weekly": "weekly",
    "monthly": "monthly",
    "low": "rarely",
}
CANCELLED = "cancelled"  # what a run says that a person has ended


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


def size(count: int) -> str:
    """An amount of data, in the largest unit of which there is one."""
    for unit, length in _SIZES:
        if count >= length:
            return f"{count / length:.3g} {unit}" if count < 100 * length else f"{count / length:.0f} {unit}"
    return f"{count} B"


def percent(share: float | None) -> str:
    """A share of a whole; none where there is no whole."""
    return NOTHING if share is None else f"{100 * share:.1f} %"


def tell_frequency(name: str, language: Language | None = None) -> str:
    """How often a source publishes, by the name of its class."""
    return translate(_FREQUENCIES.get(name, name), language)


def tell_run(status: str, error: str | None, language: Language | None = None) -> str:
    """How a run stands. It is skipped when a step has filtered its item out, or when a person has ended it."""
    if status != "skipped":
        return translate(status, language)
    return translate(CANCELLED if error == CANCELLED else "filtered out", language)


def tell_step(status: str, error: str | None, language: Language | None = None) -> str:
    """How a step stands. It is skipped when it failed and is optional, or when its run ended before it began."""
    if status != "skipped":
        return translate(status, language)
    if error == CANCELLED:
        return translate(CANCELLED, language)
    return translate("failed (optional)" if error else "not run", language)


def iso(at: float | None) -> str | None:
    """A time for machines: ISO 8601 in UTC, to the millisecond."""
    if at is None:
        return None
    return (_EPOCH + timedelta(seconds=at)).isoformat(
        "T", "milliseconds"
    ) + "Z"  # lists have thousands of them

"""Days and hours as people say them, in their time zone and language; and where they are along an axis."""

from datetime import date, datetime, timedelta, tzinfo

from headwater.language import Language, translate

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
LONGEST_BY_HOURS = 36 * 3_600.0
LONGEST_BY_WEEKDAYS = 10 * 86_400.0


def weekdays(language: Language) -> list[str]:
    return [str(translate(day, language)) for day in DAYS]


def tell_date(day: date, language: Language) -> str:
    """12 Nov, or 11 月 12 日."""
    if language == "zh":
        return f"{day.month} 月 {day.day} 日"
    return f"{day.day} {MONTHS[day.month - 1]}"


def tell_weekday(day: date, language: Language) -> str:
    """Tue 10, or 周二 10 日."""
    name = translate(DAYS[day.weekday()], language)
    return f"{name} {day.day} 日" if language == "zh" else f"{name} {day.day}"


def tell_moment(at: float, zone: tzinfo, language: Language) -> str:
    """Tue 10, 08:00."""
    moment = datetime.fromtimestamp(at, zone)
    return f"{tell_weekday(moment.date(), language)}, {moment:%H:%M}"


def tell_time(at: float, now: float, zone: tzinfo, language: Language) -> str:
    """Today 08:16, Fri 17:02, 12 Nov, 12 Nov 2024: as exactly as it matters."""
    moment, today = datetime.fromtimestamp(at, zone), datetime.fromtimestamp(now, zone).date()
    days = (today - moment.date()).days
    if days == 0:
        return f"{translate('Today', language)} {moment:%H:%M}"
    if 0 < days < 7:
        return f"{translate(DAYS[moment.weekday()], language)} {moment:%H:%M}"
    told = tell_date(moment.date(), language)
    if moment.year == today.year:
        return told
    return f"{moment.year} 年 {told}" if language == "zh" else f"{told} {moment.year}"


def tell_soon(at: float, now: float, zone: tzinfo, language: Language) -> str:
    """today at 16:00, tomorrow at 09:25, on Fri at 17:02, on 12 Nov at 08:00: within a sentence."""
    moment, today = datetime.fromtimestamp(at, zone), datetime.fromtimestamp(now, zone).date()
    days = (moment.date() - today).days
    if days in (0, 1):
        text = translate("today at {hour}" if days == 0 else "tomorrow at {hour}", language)
        return text.format(hour=f"{moment:%H:%M}")
    day = translate(DAYS[moment.weekday()], language) if 0 < days < 7 else tell_date(moment.date(), language)
    return translate("on {day} at {hour}", language).format(day=day, hour=f"{moment:%H:%M}")


def axis_ticks(begin: float, end: float, zone: tzinfo, language: Language) -> list[tuple[float, str]]:
    """Round times between two moments, from 0 to 1 along the way: hours, weekdays or dates, as fits the span."""
    span = end - begin
    first = datetime.fromtimestamp(begin, zone)
    if span <= LONGEST_BY_HOURS:
        moments = _every(first, timedelta(hours=4), end)
        return [((at.timestamp() - begin) / span, f"{at:%H:%M}") for at in moments]
    every = 1 if span <= LONGEST_BY_WEEKDAYS else 5
    tell = tell_weekday if every == 1 else tell_date
    return [
        ((at.timestamp() - begin) / span, tell(at.date(), language))
        for at in _every(first, timedelta(days=every), end)
        if (end - at.timestamp()) / span > 0.04
    ]


def _every(first: datetime, step: timedelta, end: float) -> list[datetime]:
    """Midnight and every step from there, after the first moment and before the end."""
    at = first.replace(hour=0, minute=0, second=0, microsecond=0)
    found = []
    while at.timestamp() < end:
        if at >= first:
            found.append(at)
        at += step
    return found

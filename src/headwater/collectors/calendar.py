"""`file.calendar`: the events to come of a calendar (iCalendar), each as an item as soon as it is near enough."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from pydantic import Field

from headwater.collectors.base import Collector, FetchRequest, FetchResult, SourceConfig, request_for
from headwater.fetch.message import NO_VALIDATORS
from headwater.formats.calendars import Event, read_calendar
from headwater.formats.html import escape_text, text_as_html
from headwater.formats.links import is_followable, join
from headwater.model import Item, Json, SourceMetadata
from headwater.threads import read_aside


class CalendarConfig(SourceConfig):
    days_ahead: int = Field(
        default=180, ge=1, le=3_660, description="How many days before it begins an event becomes an item."
    )
    days_back: int = Field(
        default=0,
        ge=0,
        le=36_600,
        description="How many days after it has ended an event may still become one.",
    )
    recurrences: int = Field(
        default=1,
        ge=1,
        le=100,
        description="How many of the next dates of an event that recurs become items.",
    )


class CalendarCollector(Collector):
    config_model = CalendarConfig
    schemes = ("http", "https")

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock

    def locate(self, url: str | None, config: Json) -> tuple[str | None, Json]:
        """`webcal://` is how calendars are linked to."""
        for scheme, plain in (("webcals://", "https://"), ("webcal://", "https://")):
            if url is not None and url.strip().lower().startswith(scheme):
                url = plain + url.strip()[len(scheme) :]
        return url, config

    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        source, config = fetch_request.source, fetch_request.config
        request = request_for(source, config)
        request.validators = NO_VALIDATORS  # what is near enough changes with the clock
        request.accept = "text/calendar, */*;q=0.1"
        response = await fetch_request.fetcher.get(request)
        now = datetime.fromtimestamp(self._clock(), UTC)
        found = await read_aside(
            len(response.body),
            read_calendar,
            response.body,
            after=now - timedelta(days=config.days_back),
            before=now + timedelta(days=config.days_ahead),
            most_recurrences=config.recurrences,
            content_type=response.content_type,
        )
        site = found.url if found.url and is_followable(found.url) else None
        return FetchResult.of(
            response,
            items=tuple(_item(each, response.url) for each in found.events),
            metadata=SourceMetadata(found.title, found.description, site),
            left_out_count=found.left_out,
        )


def _item(event: Event, base: str) -> Item:
    """Without a date where it recurs: all its items would be alike, and one be taken for the other."""
    lines = [f"<b>{escape_text(tell_when(event))}</b>"]
    if event.status and event.status != "CONFIRMED":
        lines.insert(0, escape_text(event.status))
    if event.place:
        lines.append(escape_text(event.place))
    body = event.html or (text_as_html(event.description) if event.description else "")
    return Item(
        external_id=event.uid,
        url=join(base, event.url),
        title=event.title or tell_when(event),
        author=event.organizer,
        summary="<br>".join(lines),
        content=f"<p>{'<br>'.join(lines)}</p>{body}",
        published_at=None if event.recurs or not event.created else event.created.timestamp(),
        updated_at=event.modified.timestamp() if event.modified else None,
        categories=event.categories,
        extras={
            "event": {
                "starts_at": event.starts.isoformat(),
                **({"ends_at": event.ends.isoformat()} if event.ends else {}),
                **({"whole_day": True} if event.is_whole_day else {}),
                **({"place": event.place} if event.place else {}),
            }
        },
    )


def tell_when(event: Event) -> str:
    """When an event is, in the time of the place where it is: its readers are there, or know its zone."""
    starts, ends = event.starts, event.ends
    if event.is_whole_day:
        last = (ends - timedelta(days=1)) if ends else starts
        if last.date() <= starts.date():
            return f"{starts:%Y-%m-%d}"
        return f"{starts:%Y-%m-%d} – {last:%Y-%m-%d}"
    zone = event.zone or "UTC"
    if ends is None:
        return f"{starts:%Y-%m-%d %H:%M} ({zone})"
    ends = ends.astimezone(starts.tzinfo)
    if ends.date() == starts.date():
        return f"{starts:%Y-%m-%d %H:%M}–{ends:%H:%M} ({zone})"
    return f"{starts:%Y-%m-%d %H:%M} – {ends:%Y-%m-%d %H:%M} ({zone})"

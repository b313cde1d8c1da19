"""Times as programs read them in answers, and write them in questions."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Query
from pydantic import PlainSerializer, WithJsonSchema

from headwater.wording import iso

Time = Annotated[
    float,
    PlainSerializer(iso, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-02-25T10:30:00.000Z"]}),
]

Since = Annotated[
    datetime | None, Query(description="Not older than this time (ISO 8601; UTC unless it says).")
]
Until = Annotated[datetime | None, Query(description="Older than this time (ISO 8601; UTC unless it says).")]


def seconds_of(moment: datetime | None) -> float | None:
    """A time that was asked for, as times are kept."""
    if moment is None:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()

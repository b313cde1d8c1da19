"""Times in requests."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Query

Since = Annotated[
    datetime | None, Query(description="Not older than this time (ISO 8601; UTC unless it says).")
]
Until = Annotated[datetime | None, Query(description="Older than this time (ISO 8601; UTC unless it says).")]


def seconds_of(moment: datetime | None) -> float | None:
    """A time that was asked for, as times are kept."""
    if moment is None:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()

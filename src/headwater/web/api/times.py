"""Times as programs read them in answers."""

from typing import Annotated

from pydantic import PlainSerializer, WithJsonSchema

from headwater.wording import iso

Time = Annotated[
    float,
    PlainSerializer(iso, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-02-25T10:30:00.000Z"]}),
]

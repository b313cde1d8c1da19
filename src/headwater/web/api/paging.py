"""Long lists page by page: an answer holds up to `limit` things and the cursor of the next page.

A cursor is the place of the page's last thing, in a form that callers pass back and do not read.
"""

import base64
import binascii
import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

import orjson
from fastapi import Query, Request, Response
from pydantic import Field

from headwater.errors import InputError
from headwater.web.etags import answer_tagged

T = TypeVar("T")

LONGEST_CURSOR = 200
_SMALLEST, _BIGGEST = -(2**63), 2**63 - 1

Cursor = Annotated[
    str | None,
    Query(
        max_length=LONGEST_CURSOR,
        description="Where to go on: `next` of the page before. Left out, the list begins at its beginning.",
    ),
]
Next = Annotated[str | None, Field(description="The cursor of the next page; null: there are no more.")]
MOST_AT_ONCE = 1_000
Limit = Annotated[int, Query(ge=1, le=MOST_AT_ONCE, description="How many on a page.")]


def encode_cursor(*place: float) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(place)).rstrip(b"=").decode()


def decode_cursor(text: str | None, *kinds: type) -> tuple[Any, ...] | None:
    """The place a cursor means, of these kinds (int or float); None for no cursor. InputError if it is none of ours."""
    if text is None:
        return None
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        values = orjson.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        return tuple(_read(value, kind) for value, kind in zip(values, kinds, strict=True))
    except (ValueError, TypeError, binascii.Error):
        raise InputError(
            "the cursor {cursor} is invalid; pass the `next` value of the previous page unchanged",
            cursor=text[:40],
        ) from None


def _read(value: Any, kind: type) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError  # noqa: TRY004 - the caller turns it into the one clear line
    if kind is int and not isinstance(value, int):
        raise ValueError
    if not _SMALLEST <= value <= _BIGGEST or not math.isfinite(value):
        raise ValueError
    return kind(value)


def split_page(
    found: Sequence[T], limit: int, place: Callable[[T], tuple[float, ...]]
) -> tuple[Sequence[T], str | None]:
    """One page of what was found with one more than `limit`, and the cursor of the next if there is one."""
    if len(found) <= limit:
        return found, None
    page = found[:limit]
    return page, encode_cursor(*place(page[-1]))


def answer_page(
    request: Request,
    name: str,
    found: Sequence[T],
    limit: int,
    place: Callable[[T], tuple[float, ...]],
    show: Callable[[T], dict[str, Any]],
) -> Response:
    """One page of what was found with one more than `limit`: a list under `name`, and the cursor of the next page."""
    page, following = split_page(found, limit, place)
    return answer_tagged(request, {name: [show(each) for each in page], "next": following})


def decode_number(text: str | None) -> int | None:
    """The number that the cursor of a list sorted by number means."""
    place = decode_cursor(text, int)
    return place[0] if place else None

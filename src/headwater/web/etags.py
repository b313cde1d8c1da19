"""Entity tags: an answer of no body for a caller who has the thing already."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Annotated, Any

import orjson
from fastapi import Header, Request
from fastapi.responses import Response

IfNoneMatch = Annotated[
    str | None,
    Header(
        max_length=1_000,
        description="The `ETag` of an answer that you have: nothing is sent if it is still the same.",
    ),
]
IfMatch = Annotated[
    str | None,
    Header(
        max_length=1_000,
        description=(
            "The `ETag` of the answer that you change: 412 if another request has changed it since. Without, it is"
            " changed in any case."
        ),
    ),
]
NOT_MODIFIED: dict[int | str, dict[str, Any]] = {304: {"description": "You have it already."}}


def has_tag(request: Request, tag: str) -> bool:
    """Whether the caller says to have what this tag stands for."""
    tags = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    return tag in tags or "*" in tags


def expected_version(if_match: str | None) -> str | None:
    """The version that an If-Match names. Tags of things that are edited begin with it."""
    if if_match is None:
        return None
    return if_match.strip().removeprefix("W/").strip('"').partition(".")[0]


def tag_of(body: bytes, version: str | None = None) -> str:
    """The tag of an answer; of a thing that can be edited, it begins with its version."""
    digest = blake2b(body, digest_size=12).hexdigest()
    return f'"{version}.{digest}"' if version else f'"{digest}"'


def answer_tagged(request: Request, answer: Mapping[str, Any], version: str | None = None) -> Response:
    """The answer as JSON with its tag, or that the caller has it already."""
    body = orjson.dumps(answer)
    tag = tag_of(body, version)
    headers: Mapping[str, str] = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Authorization"}
    if has_tag(request, tag):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)

"""Entity tags: an answer of no body for a caller who has the thing already."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Annotated, Any

from fastapi import Header, Request
from fastapi.responses import Response
from pydantic import BaseModel

IfNoneMatch = Annotated[
    str | None,
    Header(
        max_length=1_000,
        description="The `ETag` of an answer that you have: nothing is sent if it is still the same.",
    ),
]
NOT_MODIFIED: dict[int | str, dict[str, Any]] = {304: {"description": "You have it already."}}


def has_tag(request: Request, tag: str) -> bool:
    """Whether the caller says to have what this tag stands for."""
    tags = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    return tag in tags or "*" in tags


def answer_tagged(request: Request, answer: BaseModel | bytes) -> Response:
    """The answer, or its JSON, with its tag, or that the caller has it already."""
    body = answer if isinstance(answer, bytes) else answer.model_dump_json().encode()
    tag = f'"{blake2b(body, digest_size=12).hexdigest()}"'
    headers: Mapping[str, str] = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Authorization"}
    if has_tag(request, tag):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)

"""How steps ask services outside: secrets from the environment, and an answer or the right kind of error.

A service that may work later (busy, down, not to be reached) is a PassingStepError; one that says no is a
StepError. What it answered is in the message, secrets are in none.
"""

import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, NoReturn

import orjson

from headwater.errors import FailureKind, FetchError, InputError
from headwater.fetch.client import Fetcher
from headwater.fetch.message import Auth, BearerAuth, Request, Response, public_url
from headwater.formats.html import collapse
from headwater.pipeline.steps.base import PassingStepError, StepContext, StepError

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_PASSING_KINDS = frozenset(
    {
        *(FailureKind.DNS, FailureKind.CONNECT, FailureKind.TIMEOUT, FailureKind.BROKEN),
        *(FailureKind.RATE_LIMITED, FailureKind.SERVER_ERROR),
    }
)
_PASSING_STATUSES = frozenset((408, 409, 421, 423, 425, 429))
_SHOWN_CHARACTERS = 300


def reveal(text: str) -> str:
    """`text` with every `${NAME}` replaced by that environment variable; StepError when it is not set."""

    def value_of(found: re.Match[str]) -> str:
        value = os.environ.get(found[1])
        if not value:
            raise StepError(
                "the environment variable {name} is not set; set it where the worker runs", name=found[1]
            )
        return value

    return _VARIABLE.sub(value_of, text)


def reveal_if_set(text: str | None) -> str | None:
    """As `reveal`, but None for no text and for one that is a single variable which is not set."""
    if text is None or ((only := _VARIABLE.fullmatch(text)) and not os.environ.get(only[1])):
        return None
    return reveal(text)


def require_extra(extra: str, module: str, step_type: str) -> None:
    """InputError with the way out when what a step needs for this config is not installed."""
    if find_spec(module) is None:
        raise InputError(
            "{step} needs more than is installed: pip install 'headwater[{extra}]'",
            step=step_type,
            extra=extra,
        )


def door_of(context: StepContext) -> Fetcher:
    if context.fetcher is None:
        raise RuntimeError("this step needs the door to the network")
    return context.fetcher


def raise_as_step_error(error: FetchError) -> NoReturn:
    """A failed request as the step's own failure, which passes when the request's does."""
    if error.kind not in _PASSING_KINDS:
        raise StepError(error.template, **error.values) from None
    passing = PassingStepError(error.template, **error.values)
    passing.retry_after_seconds = error.retry_after_seconds
    raise passing from None


async def post(
    context: StepContext,
    url: str,
    body: bytes,
    *,
    content_type: str,
    headers: Mapping[str, str] | None = None,
    auth: Auth | None = None,
    seconds: float,
    max_bytes: int = 10_000_000,
    is_secret: bool = False,
) -> Response:
    """The answer of a service to `body`, if it is a good one. Of an address that is secret, messages name the host."""
    shown = _origin(url) if is_secret else public_url(url)
    request = Request(
        url,
        headers={"Content-Type": content_type, **(headers or {})},
        auth=auth,
        accept="application/json, */*;q=0.5",
        body=body,
        max_bytes=max_bytes,
        total_seconds=seconds,
        read_seconds=seconds,
    )
    try:
        response = await door_of(context).post(request)
    except FetchError as error:
        error.values["url"] = shown
        raise_as_step_error(error)
    if 200 <= response.status < 300:
        return response
    values = {"url": shown, "status": response.status, "answer": _excerpt(response.body)}
    if response.status in _PASSING_STATUSES or response.status >= 500:
        passing = PassingStepError("{url} answered {status}: {answer}", **values)
        passing.retry_after_seconds = response.hints.retry_after_seconds
        raise passing
    raise StepError("{url} answered {status}: {answer}", **values)


async def post_json(
    context: StepContext, url: str, value: Any, *, api_key: str | None, seconds: float
) -> dict[str, Any]:
    """The JSON object a service answers to a JSON value."""
    response = await post(
        context,
        url,
        orjson.dumps(value),
        content_type="application/json",
        auth=BearerAuth(api_key) if api_key else None,
        seconds=seconds,
    )
    return json_object(response)


def json_object(response: Response) -> dict[str, Any]:
    try:
        answer = orjson.loads(response.body)
    except orjson.JSONDecodeError:
        answer = None
    if not isinstance(answer, dict):
        raise StepError(
            "{url} answered something else than a JSON object: {answer}",
            url=response.url,
            answer=_excerpt(response.body),
        )
    return answer


def _origin(url: str) -> str:
    scheme, slashes, rest = public_url(url).partition("://")
    return scheme + slashes + re.split(r"[/?#]", rest, maxsplit=1)[0]


def _excerpt(body: bytes) -> str:
    text = collapse(body[: 4 * _SHOWN_CHARACTERS].decode("utf-8", "replace"))
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"

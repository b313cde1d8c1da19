"""Asking a service outside: secrets from the environment, and an answer or the right kind of error.

A service that may work later (busy, down, not to be reached) is a PassingStepError; one that says no is a
StepError. What it answered is in the message, secrets are in none.
"""

import os
import re
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import Any, NoReturn, Protocol

import orjson

from headwater.collectors.secrets import REFERENCE, fill_text
from headwater.config import SECRET_PREFIX
from headwater.errors import FailureKind, FetchError, InputError, PassingStepError, StepError
from headwater.fetch.client import Fetcher
from headwater.fetch.message import Auth, BearerAuth, Request, Response, public_url
from headwater.formats.html import collapse

MODEL_VARIABLES = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL")  # as OpenAI's own libraries read them
TOLD_VARIABLES = ("OPENAI_MODEL",)  # no secret: an error names the model
_PASSING_KINDS = frozenset(
    {
        *(FailureKind.DNS, FailureKind.CONNECT, FailureKind.TIMEOUT, FailureKind.BROKEN),
        *(FailureKind.RATE_LIMITED, FailureKind.SERVER_ERROR),
    }
)
_PASSING_STATUSES = frozenset((408, 409, 421, 423, 425, 429))
_SHOWN_CHARACTERS = 300
_EXAMINED_BYTES = 100_000  # a secret that the excerpt would cut in two must still be seen whole
_SECRET_CHARACTERS = 4  # what is shorter is found in any text
_DIVIDERS = re.compile(r"[\s/?#&=]+")  # a secret may be one word of a header, one part of an address


class ServiceContext(Protocol):
    """What is needed to ask a service: the door to the network, and what `${NAME}` stands for."""

    @property
    def fetcher(self) -> Fetcher | None: ...
    @property
    def secrets(self) -> Mapping[str, str]: ...


def secrets_for_steps(
    secrets: Mapping[str, str], environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """What `${NAME}` in a step's config may stand for: the same as in a source's, and the model service's own."""
    known = {name: environment[name] for name in MODEL_VARIABLES if name in environment}
    return {**known, **secrets}


def reveal(context: ServiceContext, text: str) -> str:
    """`text` with the secrets it refers to; StepError names the variable that is missing."""
    return fill_text(text, context.secrets, _missing)


def reveal_if_set(context: ServiceContext, text: str | None) -> str | None:
    """As `reveal`, but None for no text and for one that is a single reference to what is not set."""
    if text is None or (
        (only := REFERENCE.fullmatch(text)) and not context.secrets.get(only[1].removeprefix(SECRET_PREFIX))
    ):
        return None
    return reveal(context, text)


def _missing(variable: str) -> StepError:
    plain = variable.removeprefix(SECRET_PREFIX)
    if plain in MODEL_VARIABLES:  # a step's config refers to them unless it is changed
        return StepError("the language model is not set: give {names}", names=plain)
    return StepError(
        "the config refers to {variable}, but there is no such variable in the environment of this process",
        variable=variable,
    )


def require_extra(extra: str, module: str, step_type: str) -> None:
    """InputError with the way out when what a step needs for this config is not installed."""
    if find_spec(module) is None:
        raise InputError(
            "{step} needs more than is installed: pip install 'headwater[{extra}]'",
            step=step_type,
            extra=extra,
        )


def fetcher_of(context: ServiceContext) -> Fetcher:
    if context.fetcher is None:
        raise RuntimeError("there is no door to the network here")
    return context.fetcher


def raise_as_step_error(error: FetchError) -> NoReturn:
    """A failed request as the step's own failure, which passes when the request's does."""
    if error.kind not in _PASSING_KINDS:
        raise StepError(error.template, **error.values) from None
    passing = PassingStepError(error.template, **error.values)
    passing.retry_after_seconds = error.retry_after_seconds
    raise passing from None


async def post(
    context: ServiceContext,
    url: str,
    body: bytes,
    *,
    content_type: str,
    headers: Mapping[str, str] | None = None,
    auth: Auth | None = None,
    seconds: float,
    max_bytes: int = 10_000_000,
    is_secret: bool = False,
    hidden: Iterable[str] = (),
) -> Response:
    """The answer of a service to `body`, if it is a good one. Of an address that is secret, messages name the host.

    `hidden`: what else of the request must not be told when the service repeats it.
    """
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
        response = await fetcher_of(context).post(request)
    except FetchError as error:
        error.values["url"] = shown
        raise_as_step_error(error)
    if 200 <= response.status < 300:
        return response
    if is_secret:
        hidden = (*hidden, url.removeprefix(shown))
    values: dict[str, Any] = {
        "url": shown,
        "status": response.status,
        "answer": _excerpt(response.body, hidden),
    }
    if response.status in _PASSING_STATUSES or response.status >= 500:
        passing = PassingStepError("{url} returned {status}: {answer}", **values)
        passing.retry_after_seconds = response.hints.retry_after_seconds
        raise passing
    if response.status == 401 and auth is not None:
        raise StepError(
            "{url} refuses the API key (401); check the variable OPENAI_API_KEY, or api_key of the step: {answer}",
            **values,
        )
    raise StepError("{url} returned {status}: {answer}", **values)


async def post_json(
    context: ServiceContext, url: str, value: Any, *, api_key: str | None, seconds: float
) -> dict[str, Any]:
    """The JSON object a service answers to a JSON value."""
    hidden = (api_key,) if api_key else ()
    response = await post(
        context,
        url,
        orjson.dumps(value),
        content_type="application/json",
        auth=BearerAuth(api_key) if api_key else None,
        seconds=seconds,
        hidden=hidden,
    )
    return json_object(response, hidden=hidden)


def json_object(response: Response, *, hidden: Iterable[str] = ()) -> dict[str, Any]:
    try:
        answer = orjson.loads(response.body)
    except orjson.JSONDecodeError:
        answer = None
    if not isinstance(answer, dict):
        raise StepError(
            "{url} did not return a JSON object: {answer}",
            url=public_url(response.url),
            answer=_excerpt(response.body, hidden),
        )
    return answer


def _origin(url: str) -> str:
    scheme, slashes, rest = public_url(url).partition("://")
    return scheme + slashes + re.split(r"[/?#]", rest, maxsplit=1)[0]


def _excerpt(body: bytes, hidden: Iterable[str] = ()) -> str:
    """The beginning of an answer, without what was secret in the question: some services repeat what they were sent."""
    whole = body[:_EXAMINED_BYTES].decode("utf-8", "replace")
    parts = {part for text in hidden for part in (text, *_DIVIDERS.split(text))}
    for secret in sorted((part for part in parts if len(part) >= _SECRET_CHARACTERS), key=len, reverse=True):
        whole = whole.replace(secret, "***")
    text = collapse(whole[: 4 * _SHOWN_CHARACTERS])
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"

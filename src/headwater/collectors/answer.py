"""Recognises responses that are not what a service promises: a page instead of data, or a captcha. Pure."""

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from headwater.errors import FailureKind, ParseError, VisitError
from headwater.fetch.message import Response, public_url
from headwater.formats.limits import load_json

_PAGE: Final = re.compile(rb"\A\s*(?:\xef\xbb\xbf)?\s*<(?:!doctype|html|head|body|!--|\?xml)", re.IGNORECASE)
# The marks of the pages that ask whether a person is there, of every service.
_CAPTCHA: Final = re.compile(
    rb"g-recaptcha|h-captcha|hcaptcha\.com|recaptcha/api|cf-turnstile|cf-challenge|challenge-platform|_cf_chl_opt"
    rb"|geetest|captcha-delivery|px-captcha|awswaf|verify you are (?:a )?human|are you a robot"
    rb"|\xe9\xaa\x8c\xe8\xaf\x81\xe7\xa0\x81"  # 验证码
    rb"|<title>[^<]*(?:captcha|just a moment)",
    re.IGNORECASE,
)
_LOOK_AT_BYTES: Final = 100_000


def refuse_captcha(response: Response) -> None:
    """VisitError when the answer is a page that wants to see a person."""
    start = response.body[:_LOOK_AT_BYTES]
    if _PAGE.match(start) and _CAPTCHA.search(start):
        raise VisitError(
            FailureKind.FORBIDDEN,
            "{url} returned a captcha. Visit it less often, or set the cookies of a"
            " browser session in its config.",
            http_status=response.status,
            url=public_url(response.url),
        )


def read_json(response: Response) -> Any:
    """The answer as JSON; VisitError says what it is instead."""
    try:
        return load_json(response.body)
    except orjson.JSONDecodeError as error:
        refuse_captcha(response)
        shown = public_url(response.url)
        if _PAGE.match(response.body[:1024]):
            raise ParseError("{url} returned a web page where JSON was expected.", url=shown) from None
        if not response.body.strip():
            raise ParseError(
                "{url} returned an empty response.", kind=FailureKind.MALFORMED, url=shown
            ) from None
        raise ParseError(
            "{url} returned something that is not JSON: {problem}",
            kind=FailureKind.MALFORMED,
            url=shown,
            problem=str(error)[:200],
        ) from None


def changed_structure(url: str, missing: str) -> ParseError:
    """The error for an answer that reads, but is without something it always had."""
    return ParseError(
        "{url} returned a response without {missing}: its structure has changed.",
        kind=FailureKind.CHANGED_STRUCTURE,
        url=public_url(url),
        missing=missing,
    )


def read_list(data: Any, path: str, url: str) -> list[Any]:
    """The list at a dotted path of an answer; the error names the path where there is none."""
    for name in path.split(".") if path else ():
        data = data.get(name) if isinstance(data, Mapping) else None
    if not isinstance(data, list):
        raise changed_structure(url, path or "a list")
    return data


def text_of(value: Any) -> str | None:
    """A value of an answer as text; None where there is none. Lists and objects are not text."""
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return None


def number_of(value: Any) -> int | None:
    """A count in an answer; None where there is none."""
    return int(value) if isinstance(value, int | float) and abs(value) < 2**53 else None


def time_of(value: Any) -> float | None:
    """A number of seconds since 1970 in an answer; None for what is not a time of ours."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e11:
        return float(value)
    return None

"""Pages as a real browser shows them, for collectors that ask for it; the browser is started by the first."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headwater.errors import FailureKind, PassingStepError, StepError, VisitError
from headwater.fetch.client import Fetcher
from headwater.fetch.message import NO_VALIDATORS, Headers, Response, public_url

SECONDS = 60.0
PAGE_TYPE = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class _Context:
    fetcher: Fetcher
    secrets: Mapping[str, str]


def make_show(config: Any, fetcher: Fetcher) -> Callable[[str], Awaitable[Response]] | None:
    """What opens pages; None where the config asks for no browser, or none is installed.

    The browser's connections go through the guard of `fetcher`.
    """
    # Most models have no such key, and asking one of those for it costs an error.
    if "browser" not in type(config).model_fields or not config.browser:
        return None
    from headwater.services.browser import is_installed, show_page

    if not is_installed():
        return None

    async def show(url: str) -> Response:
        try:
            page = await show_page(_Context(fetcher, {}), url, SECONDS)
        except StepError as error:
            kind = FailureKind.SERVER_ERROR if isinstance(error, PassingStepError) else FailureKind.BLOCKED
            raise VisitError(kind, "{problem}", problem=error.render("en")) from None
        if page.status >= 400:
            raise VisitError(
                FailureKind.NOT_FOUND if page.status == 404 else FailureKind.SERVER_ERROR,
                "{url}: the server answered with status {status}.",
                http_status=page.status,
                url=public_url(url),
                status=page.status,
            )
        headers = Headers([(b"content-type", PAGE_TYPE.encode())])
        return Response(
            page.url,
            page.status,
            headers,
            page.html.encode(),
            NO_VALIDATORS,
            unchanged=False,
            content_type=PAGE_TYPE,
        )

    return show

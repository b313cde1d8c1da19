"""How much a caller may send: what is larger is refused before it is read."""

from starlette.types import ASGIApp, Receive, Scope, Send

from headwater.errors import Text
from headwater.web.api.problems import problem_answer

LARGEST_BODY_BYTES = 2_000_000
LARGEST_OF_STRANGERS_BYTES = 20_000  # reading a form may take a microsecond a byte
LARGEST_LIST_BYTES = 12_000_000  # a list of a hundred thousand feeds
LISTS = (
    *("/api/sources/import", "/sources/import", "/api/feeds/import", "/read/feeds/import"),
    *("/reader/api/0/subscription/import", "/api/greader.php/reader/api/0/subscription/import"),
)
# What is read before anyone is known.
STRANGERS = (
    *("/login", "/logout", "/signup", "/api/auth/login", "/api/auth/logout", "/api/auth/register"),
    *("/fever", "/fever/", "/api/fever.php", "/api/fever.php/"),
    *("/accounts/ClientLogin", "/api/greader.php/accounts/ClientLogin"),
)


class BodyLimit:
    """Lets no request through whose body is too large, or does not say how large it is."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = dict(scope["headers"])
            limit = largest_body(scope["path"])
            length = headers.get(b"content-length", b"0")
            refusal = None
            if b"transfer-encoding" in headers:
                refusal = 411, Text("the request needs the header Content-Length")
            elif not length.isdigit() or len(length) > 18 or int(length) > limit:
                refusal = 413, Text("the body is larger than {limit} bytes", limit=limit)
            if refusal is not None:
                await problem_answer(scope, *refusal)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def largest_body(path: str) -> int:
    if path in STRANGERS:
        return LARGEST_OF_STRANGERS_BYTES
    return LARGEST_LIST_BYTES if path in LISTS else LARGEST_BODY_BYTES

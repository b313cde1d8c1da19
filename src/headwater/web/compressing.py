"""Answers for reader apps are compressed: phones fetch thousands of items over slow lines."""

from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

FOR_APPS = ("/reader/", "/api/greader.php/", "/fever", "/api/fever.php")
SMALLEST_BYTES = 1_000
LEVEL = 4  # a quarter of the time of the usual one, for a tenth more bytes


class CompressForApps:
    """Compresses what reader apps are answered, if they take that."""

    def __init__(self, app: ASGIApp) -> None:
        self._plain = app
        self._compressed = GZipMiddleware(app, minimum_size=SMALLEST_BYTES, compresslevel=LEVEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_for_app = scope["type"] == "http" and scope["path"].startswith(FOR_APPS)
        await (self._compressed if is_for_app else self._plain)(scope, receive, send)

"""The demo's web server: answers for its sources, with ETag, Last-Modified and 304 as good publishers do.

It has a webhook too, to see one called: what was sent to it is shown at the same address.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from email.utils import formatdate
from hashlib import blake2b

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse

from headwater.demo.documents import CONTENT_TYPES, render
from headwater.demo.pictures import PATH, draw
from headwater.demo.sources import WINDOW, DemoSource

HOOK = "/hook"
SHOWN_DELIVERIES = 20
SHOWN_BYTES = 2_000


def create_publisher(
    sources: Sequence[DemoSource],
    *,
    start_at: float,
    clock: Callable[[], float] = time.time,
    clock_of: Callable[[str], float] | None = None,
    window_seconds: float | None = None,
) -> FastAPI:
    """The publisher of `sources`, which began at `start_at`.

    Each shows its newest WINDOW items, or those of the last `window_seconds`. `clock_of` tells the time at a path, if
    it is not the same everywhere.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    by_path = {source.path: source for source in sources}
    delivered: deque[str] = deque(maxlen=SHOWN_DELIVERIES)

    @app.post(HOOK)
    async def take(request: Request) -> Response:
        body = (await request.body())[:SHOWN_BYTES].decode("utf-8", "replace")
        delivered.appendleft(f"{formatdate(clock(), usegmt=True)}\n{body}\n")
        return Response(status_code=204)

    @app.get(HOOK)
    async def show() -> Response:
        return PlainTextResponse("\n".join(delivered) or "Nothing was sent here yet.\n")

    @app.get("/{path:path}")
    async def answer(request: Request, path: str) -> Response:
        source = by_path.get("/" + path)
        if (wanted := PATH.fullmatch(path)) is not None:
            return Response(draw(int(wanted[1])), media_type="image/svg+xml")
        if source is None:
            return HTMLResponse(
                "<!doctype html><title>Headwater demo</title><p>A page of the demo's publisher.</p>"
            )
        now = clock() if clock_of is None else clock_of(source.path)
        if (trouble := source.trouble_at(start_at, now)) is not None:
            headers = {"Location": trouble.location} if trouble.location else {}
            return PlainTextResponse("", status_code=trouble.status, headers=headers)
        items = source.items(start_at, now)[::-1]
        if window_seconds is None:
            items = items[:WINDOW]
        else:
            items = [item for item in items if item.published_at > now - window_seconds]
        body = render(source, items, str(request.base_url).rstrip("/"))
        etag = f'"{blake2b(body, digest_size=8).hexdigest()}"'
        headers = {"ETag": etag}
        if items:
            headers["Last-Modified"] = formatdate(items[0].published_at, usegmt=True)
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        return Response(body, media_type=CONTENT_TYPES[source.format], headers=headers)

    return app

"""The web application: the API, the dashboard's pages, outlets; under a strict content policy.

Nothing a publisher wrote reaches a page unescaped, and links lead only to http and https.
"""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.staticfiles import StaticFiles
from starlette.middleware.trustedhost import TrustedHostMiddleware

from headwater import __version__
from headwater.config import Settings
from headwater.store.database import Store
from headwater.web.api.auth import FailedKeys
from headwater.web.api.problems import API_ROOT, answer_with_problems
from headwater.web.api.router import router as api
from headwater.web.context import Context
from headwater.web.health import health_routes
from headwater.web.hosts import allowed_hosts
from headwater.web.limits import BodyLimit
from headwater.web.outlets import outlet_routes
from headwater.web.pages.routes import add_pages, show_problem
from headwater.web.push import PushDoor

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # none for others; our own forms are told apart by it
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",  # no other page may load what is here
}


def create_app(
    store: Store,
    settings: Settings,
    *,
    clock: Callable[[], float] = time.time,
    is_collecting: Callable[[], bool] | None = None,
) -> FastAPI:
    """The application on one store, listening where the settings say; `is_collecting` tells of the collector beside."""
    app = FastAPI(
        title="Headwater",
        version=__version__,
        openapi_url=f"{API_ROOT}/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    context = Context(store, settings, clock, is_collecting)
    app.state.context = context
    app.state.failed_keys = FailedKeys(clock)
    # Without this, a hostile page could reach us under a name of its own that resolves to loopback.
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=allowed_hosts(settings.host))
    app.mount("/static", StaticFiles(directory=Path(__file__).with_name("static")), name="static")

    app.add_middleware(BodyLimit)

    @app.middleware("http")
    async def secure(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await answer(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    answer_with_problems(app, HEADERS, show_problem)
    app.include_router(api)
    app.include_router(outlet_routes(store, settings.public_url))
    add_pages(app, context)

    app.include_router(health_routes())
    if settings.public_url is not None:
        app.add_middleware(PushDoor, context=app.state.context)  # added last: it stands before all others
    return app

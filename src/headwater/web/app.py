"""The web application: the API, the dashboard's pages, outlets; under a strict content policy.

Nothing a publisher wrote reaches a page unescaped, and links lead only to http and https.
"""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.staticfiles import StaticFiles

from headwater import __version__
from headwater.config import Settings
from headwater.store.core.database import Store
from headwater.web import fever
from headwater.web.api.problems import API_ROOT, answer_with_problems
from headwater.web.api.router import router as api
from headwater.web.compressing import CompressForApps
from headwater.web.context import Context
from headwater.web.google_reader.routes import add_google_reader
from headwater.web.health import health_routes
from headwater.web.hosts import KnownHosts, TrustedProxies, known_hosts
from headwater.web.limits import BodyLimit
from headwater.web.media import media_routes
from headwater.web.outlets import outlet_routes
from headwater.web.pages.routes import add_pages, show_problem
from headwater.web.pictures import picture_routes
from headwater.web.policy import CONTENT_POLICY
from headwater.web.push import PushDoor
from headwater.web.sign_in_limits import WrongSecrets

HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
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
    app.state.wrong_secrets = WrongSecrets(clock)
    app.add_middleware(KnownHosts, hosts=known_hosts(settings))
    app.mount("/static", StaticFiles(directory=Path(__file__).with_name("static")), name="static")

    app.add_middleware(BodyLimit)
    app.add_middleware(CompressForApps)

    @app.middleware("http")
    async def secure(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await answer(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    answer_with_problems(app, HEADERS, show_problem)
    app.include_router(api)
    app.include_router(outlet_routes(context))
    app.include_router(media_routes(context))
    app.include_router(picture_routes(context))
    add_google_reader(app)
    app.include_router(fever.router)
    add_pages(app, context)

    app.include_router(health_routes())
    if settings.public_url is not None:
        app.add_middleware(PushDoor, context=app.state.context)  # before all that is added above
    app.add_middleware(TrustedProxies, networks=settings.trusted_proxies)  # added last: it stands before all
    return app

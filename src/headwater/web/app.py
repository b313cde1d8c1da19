"""The web application: the API, and pages in two languages under a strict content policy.

On a loopback address the pages are open to whoever uses this machine; beyond it everything needs a key.

Nothing a publisher wrote reaches a page unescaped, and links lead only to http and https.
"""

import asyncio
import ipaddress
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.security import HTTPBasic, HTTPBasicCredentials
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.middleware.trustedhost import TrustedHostMiddleware

from headwater import __version__
from headwater.config import Settings
from headwater.language import Language, preferred_language, translate
from headwater.model import Plan
from headwater.schedule.explain import explain_plan
from headwater.store.database import Store
from headwater.store.items import count_items
from headwater.store.listing import first_sources, newest_items
from headwater.store.overview import read_overview
from headwater.web.api.auth import FailedKeys, recognise
from headwater.web.api.problems import API_ROOT, answer_with_problems
from headwater.web.api.router import router as api
from headwater.web.chart import bars
from headwater.web.context import Context, InContext
from headwater.web.outlets import outlet_routes
from headwater.web.push import PushDoor
from headwater.wording import NOTHING, ago

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",  # no other page may load what is here
}
LANGUAGE_COOKIE = "headwater_language"
LISTED_SOURCES = 200
LISTED_ITEMS = 40
COUNT_SECONDS = 5.0  # for which a number that is dear to count is good enough


def create_app(store: Store, settings: Settings, *, clock: Callable[[], float] = time.time) -> FastAPI:
    """The application on one store, listening where the settings say."""
    app = FastAPI(
        title="Headwater",
        version=__version__,
        openapi_url=f"{API_ROOT}/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.context = Context(store, settings, clock)
    app.state.failed_keys = FailedKeys(clock)
    # Without this, a hostile page could reach us under a name of its own that resolves to loopback.
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=allowed_hosts(settings.host))
    app.mount("/static", StaticFiles(directory=Path(__file__).with_name("static")), name="static")
    pages = Environment(
        loader=PackageLoader("headwater.web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    pages.filters["http_only"] = http_only

    app.include_router(outlet_routes(store, settings.public_url))

    item_count = Remembered(lambda: store.read(count_items), COUNT_SECONDS, clock)

    @app.middleware("http")
    async def secure(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await answer(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    answer_with_problems(app, HEADERS)
    app.include_router(api)

    async def overview(request: Request) -> dict[str, Any]:
        now = clock()
        language = page_language(request)
        numbers = await store.read(read_overview, now)
        return {
            "t": lambda text: translate(text, language),
            "language": language,
            "version": __version__,
            "numbers": numbers,
            "chart": bars(
                numbers.activity, title=translate("Items published each minute, last hour", language)
            ),
            "item_count": await item_count(),
            "why": lambda source: explain_plan(Plan(source.next_fetch_at, source.plan_reason), language),
            "sources": await store.read(first_sources, limit=LISTED_SOURCES),
            "items": await store.read(newest_items, limit=LISTED_ITEMS),
            "nothing": NOTHING,
            "ago": lambda at: ago(at, now, language),
        }

    @app.get("/", response_class=HTMLResponse, include_in_schema=False, dependencies=[Depends(let_in)])
    async def home(request: Request) -> HTMLResponse:
        response = HTMLResponse(pages.get_template("home.html").render(await overview(request)))
        if wanted := known_language(request.query_params.get("language")):
            response.set_cookie(LANGUAGE_COOKIE, wanted, samesite="lax", httponly=True, max_age=31_536_000)
        return response

    @app.get("/live", response_class=HTMLResponse, include_in_schema=False, dependencies=[Depends(let_in)])
    async def live(request: Request) -> HTMLResponse:
        """The changing part of the home page, which the page fetches again and again."""
        return HTMLResponse(pages.get_template("live.html").render(await overview(request)))

    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> JSONResponse:
        return JSONResponse({"status": "ok"})

    if settings.public_url is not None:
        app.add_middleware(PushDoor, context=app.state.context)  # added last: it stands before all others
    return app


class Remembered:
    """A number that is asked for at most every so many seconds, by however many viewers."""

    def __init__(self, ask: Callable[[], Awaitable[int]], seconds: float, clock: Callable[[], float]) -> None:
        self._ask = ask
        self._seconds = seconds
        self._clock = clock
        self._lock = asyncio.Lock()
        self._last: tuple[float, int] | None = None

    async def __call__(self) -> int:
        async with self._lock:  # those who come while it is asked wait for the answer
            if self._last is None or not 0 <= self._clock() - self._last[0] < self._seconds:
                self._last = self._clock(), await self._ask()
            return self._last[1]


async def let_in(
    request: Request,
    context: InContext,
    given: Annotated[HTTPBasicCredentials | None, Depends(HTTPBasic(auto_error=False))],
) -> None:
    """Beyond this machine a page needs a key, which a browser sends as a password. It opens pages, never the API."""
    if not is_loopback(context.settings.host):
        await recognise(
            request, context, given.password if given else None, 'Basic realm="Headwater", charset="UTF-8"'
        )


def is_loopback(host: str) -> bool:
    return host == "localhost" or ipaddress.ip_address(host).is_loopback


def allowed_hosts(host: str) -> list[str]:
    """The names under which a browser finds us; `host` is the one we were told to listen on.

    Beyond this machine we may have any name; there everything needs a key, which no hostile page has.
    """
    if not is_loopback(host):
        return ["*"]
    return ["127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host]


def page_language(request: Request) -> Language:
    """The language asked for by the switch, else remembered, else the browser's."""
    return (
        known_language(request.query_params.get("language"))
        or known_language(request.cookies.get(LANGUAGE_COOKIE))
        or preferred_language(request.headers.get("accept-language", ""))
    )


def known_language(text: str | None) -> Language | None:
    """`text` if it is one of our languages."""
    match text:
        case "en":
            return "en"
        case "zh":
            return "zh"
        case _:
            return None


def http_only(url: str | None) -> str | None:
    """`url` if it is a web address: a link a publisher wrote may be anything."""
    return url if url and url.lower().startswith(("http://", "https://")) else None

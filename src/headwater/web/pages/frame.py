"""What every page has: its frame, the visitor's language, the right to look, forms that are ours, notices.

A page is a function with an `InPage` argument that answers `await page.show("template.html", …)`. A form's target is
a function with an `InAction` argument: its fields are in `action.form`, and it ends with `action.back(path, notice)`.
"""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote, unquote, urlencode

from fastapi import Depends, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.datastructures import FormData

from headwater import __version__
from headwater.errors import Text
from headwater.language import Language, preferred_language, translate
from headwater.web import chart
from headwater.web.api.problems import Refusal
from headwater.web.context import Context, InContext
from headwater.web.pages.visitor import NOBODY, SESSION_COOKIE, Sessions, Visitor
from headwater.wording import NOTHING, ago, duration, iso

LANGUAGE_COOKIE = "headwater_language"
NOTICE_COOKIE = "headwater_notice"
NOTICE_CHARACTERS = 500
YEAR_SECONDS = 31_536_000
# What the navigation shows, in order: path, text.
PLACES = (
    ("/", "Overview"),
    ("/sources", "Sources"),
    ("/items", "Items"),
    ("/pipelines", "Pipelines"),
    ("/runs", "Runs"),
    ("/outlets", "Outlets"),
    ("/settings", "Settings"),
)


class SignIn(Exception):  # noqa: N818 - not an accident: the visitor has to sign in first
    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


@dataclass(frozen=True, slots=True)
class Page:
    """One visitor's request for a page."""

    request: Request
    context: Context
    sessions: Sessions
    visitor: Visitor
    language: Language

    def t(self, text: str, **values: object) -> str:
        translated = translate(text, self.language)
        return translated.format(**values) if values else translated

    def require(self, scope: str) -> None:
        """Refuse a visitor whose key has not the scope."""
        if not self.visitor.allows(scope):
            raise Refusal(403, Text("your key has not the scope {scope}, which this needs", scope=scope))

    async def show(self, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        response = HTMLResponse(await self.render(template, **values), status_code=status)
        if SESSION_COOKIE not in self.request.cookies:
            await self.sessions.give(self.request, response, NOBODY, self.visitor.number)
        if wanted := known_language(self.request.query_params.get("language")):
            response.set_cookie(LANGUAGE_COOKIE, wanted, samesite="lax", httponly=True, max_age=YEAR_SECONDS)
        if NOTICE_COOKIE in self.request.cookies:
            response.delete_cookie(NOTICE_COOKIE)
        response.headers["Cache-Control"] = "no-store"
        return response

    async def render(self, template: str, **values: Any) -> str:
        now = self.context.clock()
        pages: Environment = self.request.app.state.pages
        return pages.get_template(template).render(
            {
                "t": self.t,
                "language": self.language,
                "version": __version__,
                "places": PLACES,
                "path": self.request.url.path,
                "visitor": self.visitor,
                "form_token": await self.sessions.form_token(self.visitor),
                "notice": self._notice(),
                "nothing": NOTHING,
                "now": now,
                "ago": lambda at: ago(at, now, self.language),
                "duration": lambda seconds: duration(seconds, self.language),
                "iso": iso,
                "with_query": self.with_query,
                "chart": chart,
                **values,
            }
        )

    def with_query(self, **changes: object) -> str:
        """The address of this page with some of its query changed; None takes one out."""
        query = dict(self.request.query_params)
        for name, value in changes.items():
            query.pop(name, None)
            if value is not None:
                query[name] = str(value)
        return self.request.url.path + (f"?{urlencode(query)}" if query else "")

    def _notice(self) -> tuple[str, str] | None:
        kind, colon, text = unquote(self.request.cookies.get(NOTICE_COOKIE, "")).partition(":")
        return (kind, text) if colon and kind in ("good", "bad") else None


@dataclass(frozen=True, slots=True)
class Action:
    """One form that a visitor sent."""

    page: Page
    form: FormData

    def text(self, name: str, default: str = "") -> str:
        value = self.form.get(name, default)
        return value.strip() if isinstance(value, str) else default

    def texts(self, name: str) -> list[str]:
        return [value for value in self.form.getlist(name) if isinstance(value, str)]

    def numbers(self, name: str) -> list[int]:
        """The whole numbers among the values of a field."""
        return [int(value) for value in self.texts(name) if re.fullmatch(r"\d{1,18}", value)]

    def back(self, path: str, notice: str | None = None, *, bad: bool = False) -> Response:
        """Send the browser to a page of ours, which shows `notice` once."""
        response = RedirectResponse(path, status_code=303)
        if notice:
            kind = "bad" if bad else "good"
            response.set_cookie(
                NOTICE_COOKIE,
                quote(f"{kind}:{notice[:NOTICE_CHARACTERS]}"),
                max_age=60,
                httponly=True,
                samesite="lax",
            )
        return response


async def read_page(request: Request, context: InContext) -> Page:
    """The page asked for, by somebody who may look at it."""
    page = await open_page(request, context)
    if not page.visitor.allows("read"):
        raise SignIn(request.url.path + (f"?{request.url.query}" if request.url.query else ""))
    return page


async def open_page(request: Request, context: InContext) -> Page:
    """The page asked for, by anybody: for the door itself."""
    sessions: Sessions = request.app.state.sessions
    return Page(request, context, sessions, await sessions.visitor(request), page_language(request))


async def read_action(page: Annotated[Page, Depends(read_page)]) -> AsyncIterator[Action]:
    async with _action(page) as action:
        yield action


async def open_action(page: Annotated[Page, Depends(open_page)]) -> AsyncIterator[Action]:
    async with _action(page) as action:
        yield action


@asynccontextmanager
async def _action(page: Page) -> AsyncIterator[Action]:
    async with page.request.form(max_files=4, max_fields=10_000) as form:
        token = form.get("form_token", "")
        await page.sessions.check_form(page.request, page.visitor, token if isinstance(token, str) else "")
        yield Action(page, form)


InPage = Annotated[Page, Depends(read_page)]
Number = Annotated[str, Query(pattern=r"^\d{0,18}$")]  # in an address; empty: none
InAction = Annotated[Action, Depends(read_action)]


def make_environment() -> Environment:
    pages = Environment(
        loader=PackageLoader("headwater.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters["http_only"] = http_only
    return pages


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

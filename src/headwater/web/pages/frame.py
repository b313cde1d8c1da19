"""What every page has: its frame, the visitor's language, the right to look, forms that are ours, notices.

A page is a function with an `InPage` argument that returns `await page.show("template.html", …)`. A form's target is
a function with an `InAction` argument: its fields are in `action.form`, and it ends with `action.back(path, notice)`.
"""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import tzinfo
from typing import Annotated, Any
from urllib.parse import quote, unquote, urlencode

from fastapi import Depends, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.datastructures import FormData

from headwater import __version__
from headwater.collectors.types import type_title
from headwater.errors import InputError, Text
from headwater.language import Language, preferred_language, retell, translate
from headwater.markup import visible_text
from headwater.model import User
from headwater.states import SourceState, find_state, next_visit_at, tell_state
from headwater.store.people.users import only_user
from headwater.web import chart
from headwater.web.api.problems import Refusal
from headwater.web.context import Context, InContext
from headwater.web.dates import tell_soon, tell_time
from headwater.web.icons import icon, letter_icon
from headwater.web.pages.display import SWITCHES, YEAR_SECONDS, Display, read_display, remember_display
from headwater.web.pages.visitor import SESSION_COOKIE, Sessions, Visitor, is_surely_own
from headwater.web.step_titles import step_title
from headwater.wording import NOTHING, ago, duration, iso, percent, size, tell_frequency, tell_run, tell_step

LANGUAGE_COOKIE = "headwater_language"
NOTICE_COOKIE = "headwater_notice"
NOTICE_CHARACTERS = 500
MOST_FIELDS = 10_000  # of a form
MOST_FILES = 4
STATE_CLASSES: dict[SourceState, str] = {
    "on_time": "good",
    "late": "late",
    "failing": "bad",
    "gone": "bad",
}
STATE_ICONS: dict[SourceState, str] = {
    "pending": "dots",
    "on_time": "check",
    "late": "clock",
    "failing": "x",
    "paused": "pause",
    "gone": "gone",
    "removed": "trash",
}
RUN_LOOKS = {
    "completed": ("good", "check"),
    "failed": ("bad", "x"),
    "skipped": ("", "filter"),
    "running": ("now", "play"),
    "pending": ("", "clock"),
    "cancelled": ("", "gone"),
}
# What the navigation shows, in order: path, text, icon.
PLACES = (
    ("/read", "Read", "read"),
    ("/", "Overview", "overview"),
    ("/sources", "Sources", "sources"),
    ("/pipelines", "Pipelines", "pipelines"),
    ("/runs", "Runs", "runs"),
    ("/outlets", "Outlets", "outlets"),
    ("/digests", "Digests", "mail"),
    ("/alerts", "Alerts", "bell"),
)


# Pages that belong to another's place.
PARTS = {
    "/models": "/pipelines",
    "/targets": "/digests",
    "/digest-issues": "/digests",
    "/bookmarks": "/read",
    "/subscribe": "/read",
    "/share": "/read",
    "/connect": "/read",
}

READER_HOME = "/read"
READER_PLACES = (("/read", "Read", "read"),)  # what it shows people who are not admins


class Elsewhere(Exception):  # noqa: N818 - not an accident: the visitor's own page is another
    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


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
    has_accounts: bool = False  # whether there is more than one user
    has_password: bool = False  # whether the only user has a password

    def t(self, text: str, **values: object) -> str:
        translated = translate(text, self.language)
        return translated.format(**values) if values else translated

    def require(self, scope: str) -> None:
        """Refuse a visitor whose key lacks the scope."""
        if not self.visitor.allows(scope):
            raise Refusal(403, Text("your key lacks the scope {scope}, which this needs", scope=scope))

    @property
    def display(self) -> Display:
        """How the visitor wants pages to look."""
        user = self.visitor.user
        return read_display(self.request, user.preferences if user else None)

    @property
    def zone(self) -> tzinfo:
        """The visitor's time zone."""
        return self.display.zone

    @property
    def user(self) -> User:
        """The user who looks at the page; only for pages that need one."""
        if self.visitor.user is None:
            raise Refusal(401, Text("sign in first"))
        return self.visitor.user

    @property
    def places(self) -> tuple[tuple[str, str, str], ...]:
        """What the navigation shows this visitor. Reading marks what was read, which not every key may."""
        if not self.visitor.is_admin:
            return READER_PLACES
        return (
            PLACES if self.visitor.allows("edit") else tuple(place for place in PLACES if place[0] != "/read")
        )

    @property
    def is_own(self) -> bool:
        """Whether one of our pages, or the person at the address bar, asks: another site must not cause requests."""
        return is_surely_own(self.request, self.context)

    def stale_form(self, written: str | None = None) -> str:
        """What is said when someone else has changed what a form shows."""
        told = self.t(
            "Someone else has changed this since you opened the page, so nothing was saved."
            " The form shows what is stored now; make your change again."
        )
        return f"{told} {self.t('You wrote: {value}', value=written)}" if written else told

    async def show(self, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        response = HTMLResponse(await self.render(template, **values), status_code=status)
        if SESSION_COOKIE not in self.request.cookies:
            self.sessions.give(self.request, response, self.visitor.token)
        if wanted := known_language(self.request.query_params.get("language")):
            response.set_cookie(LANGUAGE_COOKIE, wanted, samesite="lax", httponly=True, max_age=YEAR_SECONDS)
        remember_display(self.request, response)
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
                "headwater_version": __version__,
                "places": self.places,
                "has_accounts": self.has_accounts,
                "path": self.request.url.path,
                "visitor": self.visitor,
                "form_token": self.visitor.form_token,
                "notice": self._notice(),
                "nothing": NOTHING,
                "now": now,
                "ago": lambda at: ago(at, now, self.language),
                "duration": lambda seconds: duration(seconds, self.language),
                "tell_error": lambda source: tell_error(source.last_error, source.url, self.language),
                "iso": iso,
                "next_visit_at": next_visit_at,
                "state_of": find_state,
                "tell_run": lambda run: tell_run(run.status, run.error_message, self.language),
                "tell_step": lambda step: tell_step(step.status, step.error_message, self.language),
                "tell_type": lambda name: type_title(name, self.language),
                "size": size,
                "percent": percent,
                "number": "{:,}".format,
                "tell_frequency": lambda name: tell_frequency(name, self.language),
                "tell_state": lambda state: tell_state(state, self.language),
                "state_class": STATE_CLASSES.get,
                "state_icon": STATE_ICONS.get,
                "run_look": lambda status: RUN_LOOKS.get(status, ("", "dots")),
                "display": self.display,
                "tell_time": lambda at: tell_time(at, now, self.zone, self.language),
                "step_title": lambda step_type: step_title(step_type, self.language),
                "icon": icon,
                "letter_icon": letter_icon,
                "is_at": self.is_at,
                "with_query": self.with_query,
                "chart": chart,
                **values,
            }
        )

    def tell_soon(self, at: float) -> str:
        """A time to come, within a sentence."""
        return tell_soon(at, self.context.clock(), self.zone, self.language)

    def with_query(self, **changes: object) -> str:
        """The address of this page with some of its query changed; None takes one out."""
        query = {name: value for name, value in self.request.query_params.items() if name not in SWITCHES}
        for name, value in changes.items():
            query.pop(name, None)
            if value is not None:
                query[name] = str(value)
        return self.request.url.path + (f"?{urlencode(query)}" if query else "")

    def is_at(self, place: str) -> bool:
        """Whether this page belongs to a place of the navigation."""
        path = self.request.url.path
        path = PARTS.get("/" + path.split("/")[1], path)
        if path == "/sources/add" or place in ("/", "/sources/add"):
            return path == place
        return path == place or path.startswith(place + "/")

    def _notice(self) -> tuple[str, str] | None:
        kind, colon, text = unquote(self.request.cookies.get(NOTICE_COOKIE, "")).partition(":")
        return (kind, text) if colon and kind in ("good", "bad") else None


def tell_error(error: str | None, url: str, language: Language) -> str:
    """An error beside the name of its source: without the address, as a sentence."""
    told = retell(error or "", language)
    for colon in (": ", "："):
        told = told.removeprefix(url + colon)
    return told[:1].upper() + told[1:]


@dataclass(frozen=True, slots=True)
class Action:
    """One form that a visitor sent."""

    page: Page
    form: FormData

    def text(self, name: str, default: str = "") -> str:
        value = self.form.get(name, default)
        return value.strip() if isinstance(value, str) else default

    def secret(self, name: str) -> str:
        """A field as it was typed: spaces at its ends belong to a password."""
        value = self.form.get(name, "")
        return value if isinstance(value, str) else ""

    def new_password(self, name: str) -> str:
        """A new password, which is typed twice."""
        if self.secret(name) != self.secret("again"):
            raise InputError("the two passwords differ")
        return self.secret(name)

    def texts(self, name: str) -> list[str]:
        return [value for value in self.form.getlist(name) if isinstance(value, str)]

    def numbers(self, name: str) -> list[int]:
        """The whole numbers among the values of a field."""
        return [int(value) for value in self.texts(name) if re.fullmatch(r"\d{1,18}", value)]

    def decimal(self, name: str) -> float | None:
        """A field that takes a number; None when it is empty, InputError when it is something else."""
        text = self.text(name)
        if not text:
            return None
        if re.fullmatch(r"\d{1,9}([.,]\d{1,6})?", text) is None:
            raise InputError("{text} is not a number", text=text)
        return float(text.replace(",", "."))

    def folder(self) -> tuple[str, bool]:
        """The folder that was chosen from the list or is to be made, and which of both."""
        new = self.text("new_folder")
        return new or self.text("folder"), bool(new)

    @property
    def version(self) -> str | None:
        """Of what the form shows, by which a stale form is told from one of now."""
        return self.text("version") or None

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
    """The page asked for, by an admin."""
    page = await user_page(request, context)
    if not page.visitor.is_admin:
        if request.url.path == "/":
            raise Elsewhere(READER_HOME)
        raise Refusal(403, Text("this needs an admin"))
    return page


async def user_page(request: Request, context: InContext) -> Page:
    """The page asked for, by any user who is signed in."""
    page = await open_page(request, context)
    if page.visitor.user is None or not page.visitor.allows("read"):
        raise SignIn(request.url.path + (f"?{request.url.query}" if request.url.query else ""))
    return page


async def open_page(request: Request, context: InContext) -> Page:
    """The page asked for, by anyone, signed in or not."""
    sessions: Sessions = request.app.state.sessions
    visitor = await sessions.visitor(request)
    only = await context.store.read(only_user)
    return Page(
        request,
        context,
        sessions,
        visitor,
        page_language(request, visitor),
        has_accounts=only is None,
        has_password=only is not None and only.has_password,
    )


async def read_action(page: Annotated[Page, Depends(read_page)]) -> AsyncIterator[Action]:
    async with _action(page) as action:
        yield action


async def user_action(page: Annotated[Page, Depends(user_page)]) -> AsyncIterator[Action]:
    async with _action(page) as action:
        yield action


async def open_action(page: Annotated[Page, Depends(open_page)]) -> AsyncIterator[Action]:
    async with _action(page) as action:
        yield action


@asynccontextmanager
async def _action(page: Page) -> AsyncIterator[Action]:
    await _refuse_many_fields(page.request)
    async with page.request.form(max_files=MOST_FILES, max_fields=MOST_FIELDS) as form:
        token = form.get("form_token", "")
        page.sessions.check_form(page.request, page.visitor, token if isinstance(token, str) else "")
        yield Action(page, form)


async def _refuse_many_fields(request: Request) -> None:
    """Refuse a form of empty fields, which the form's reader goes through without counting them."""
    if request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        body = await request.body()
        if body.count(b"&") + body.count(b";") > MOST_FIELDS:
            raise Refusal(413, Text("the form has more than {most} fields", most=MOST_FIELDS))


InPage = Annotated[Page, Depends(read_page)]  # for admins
InUserPage = Annotated[Page, Depends(user_page)]  # for every user
Number = Annotated[str, Query(pattern=r"^\d{0,18}$")]  # in an address; empty: none
InAction = Annotated[Action, Depends(read_action)]
InUserAction = Annotated[Action, Depends(user_action)]


def make_environment() -> Environment:
    pages = Environment(
        loader=PackageLoader("headwater.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters["http_only"] = http_only
    pages.filters["host"] = host_of
    pages.filters["visible_text"] = visible_text
    pages.filters["code_marks"] = code_marks
    return pages


def code_marks(text: str) -> Markup:
    """A text of ours, with what stands between backticks as code."""
    parts = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if at % 2 else escape(part) for at, part in enumerate(parts)
    )


def page_language(request: Request, visitor: Visitor | None = None) -> Language:
    """The language asked for by the switch, else remembered, else the user's, else the browser's."""
    user = visitor.user if visitor else None
    return (
        known_language(request.query_params.get("language"))
        or known_language(request.cookies.get(LANGUAGE_COOKIE))
        or (known_language(user.preferences.get("language")) if user else None)
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


def host_of(url: str) -> str:
    """The host of an address, as people say it."""
    return url.partition("://")[2].partition("/")[0].rpartition("@")[2].removeprefix("www.") or url


def http_only(url: str | None) -> str | None:
    """`url` if it is a web address: a link a publisher wrote may be anything."""
    return url if url and url.lower().startswith(("http://", "https://")) else None

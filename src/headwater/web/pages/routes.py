"""All pages, and what is shown when one cannot be."""

from urllib.parse import urlencode

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import RedirectResponse, Response

from headwater.errors import Text
from headwater.sources.watching import PageShelf
from headwater.web.accounts import Accounts
from headwater.web.changes import Changes
from headwater.web.context import Context
from headwater.web.pages import (
    account,
    adding,
    alerts,
    digests,
    gallery,
    items,
    live,
    models,
    outlets,
    pipelines,
    provider,
    reference,
    rules,
    runs,
    settings,
    signin,
    sources,
    statistics,
    targets,
    trying,
    users,
    watching,
)
from headwater.web.pages.frame import Elsewhere, SignIn, make_environment, open_page
from headwater.web.pages.home import home_routes
from headwater.web.pages.reading import arranging, bookmarks, connecting, installing
from headwater.web.pages.reading import routes as reading
from headwater.web.pages.visitor import Sessions


def add_pages(app: FastAPI, context: Context) -> None:
    app.state.pages = make_environment()
    app.state.sessions = Sessions(context)
    app.state.accounts = Accounts(context)
    app.state.changes = Changes(context.store, context.clock)
    app.state.shelf = PageShelf(context.clock)

    @app.exception_handler(SignIn)
    async def sign_in_first(request: Request, wanted: SignIn) -> Response:
        return RedirectResponse(f"/login?{urlencode({'next': wanted.path})}", status_code=303)

    @app.exception_handler(Elsewhere)
    async def go_elsewhere(request: Request, wanted: Elsewhere) -> Response:
        return RedirectResponse(wanted.path, status_code=303)

    pages = APIRouter(include_in_schema=False)
    pages.include_router(home_routes(context))
    # What has a word in the place of a number comes before it.
    for module in (adding, gallery, live, reference, trying, watching):
        pages.include_router(module.router)
    for module in (
        sources,
        items,
        pipelines,
        runs,
        outlets,
        digests,
        alerts,
        targets,
        models,
        settings,
        statistics,
    ):
        pages.include_router(module.router)
    for module in (signin, provider, account, users, rules):
        pages.include_router(module.router)
    for module in (arranging, reading, bookmarks, connecting, installing):
        pages.include_router(module.router)
    app.include_router(pages)


async def show_problem(request: Request, status: int, detail: Text) -> Response:
    """What went wrong, as a page."""
    page = await open_page(request, request.app.state.context)
    return await page.show("problem.html", status=status, code=status, problem=detail.render(page.language))

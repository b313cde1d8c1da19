"""`/connect`: what to type into a reader app, with an app password made by one click."""

from datetime import datetime

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from headwater.errors import InputError, Text
from headwater.store.people.app_passwords import add_app_password, list_app_passwords, remove_app_password
from headwater.web.api.problems import Refusal
from headwater.web.dates import tell_date
from headwater.web.pages.frame import Action, InUserAction, InUserPage, Page
from headwater.web.pages.reading.arranging import site_of
from headwater.web.qr import qr_svg

router = APIRouter(prefix="/connect")


@router.get("")
async def connect(page: InUserPage) -> HTMLResponse:
    return await _show(page)


@router.post("")
async def make_password(action: InUserAction) -> Response:
    """Make an app password and show it, this once."""
    page = _require_all_rights(action)
    now = page.context.clock()
    today = datetime.fromtimestamp(now, page.zone).date()
    name = action.text("name") or page.t("App of {day}", day=tell_date(today, page.language))
    try:
        _, password = await page.context.store.write(
            add_app_password, user_id=page.user.id, name=name, now=now
        )
    except InputError as error:
        return await _show(page, problem=error.render(page.language))
    return await _show(page, password)


@router.post("/{password_id}/remove")
async def disconnect(action: InUserAction, password_id: int) -> Response:
    page = _require_all_rights(action)
    await page.context.store.write(remove_app_password, page.user.id, password_id)
    return action.back("/connect", page.t("the app password is removed"))


async def _show(page: Page, password: str | None = None, problem: str | None = None) -> HTMLResponse:
    site = site_of(page)
    has_rights = page.visitor.has_all_rights
    return await page.show(
        "connect.html",
        status=200 if problem is None else 422,
        site=site,
        code=qr_svg(f"{site}/api/greader.php"),
        password=password,
        problem=problem,
        has_rights=has_rights,
        app_passwords=await page.context.store.read(list_app_passwords, page.user.id) if has_rights else [],
    )


def _require_all_rights(action: Action) -> Page:
    if not action.page.visitor.has_all_rights:
        raise Refusal(403, Text("this needs a sign-in, or a key with all scopes"))
    return action.page

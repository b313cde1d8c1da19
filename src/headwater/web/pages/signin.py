"""The door: signing in with a key or the password, and out again."""

from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import RedirectResponse, Response

from headwater.web.api.problems import Refusal
from headwater.web.pages.frame import Action, Page, open_action, open_page
from headwater.web.pages.visitor import SESSION_COOKIE, own_path

router = APIRouter()


@router.get("/login")
async def door(page: Annotated[Page, Depends(open_page)], next: str = "/") -> Response:
    if page.visitor.allows("read"):
        return RedirectResponse(own_path(next), status_code=303)
    return await page.show("signin.html", next=own_path(next), problem=None)


@router.post("/login")
async def sign_in(action: Annotated[Action, Depends(open_action)]) -> Response:
    page = action.page
    next = own_path(action.text("next"))
    try:
        key_id = await page.sessions.sign_in(page.request, action.text("secret"))
    except Refusal as refusal:
        problem = refusal.detail.render(page.language)
        return await page.show("signin.html", status=refusal.status, next=next, problem=problem)
    response = action.back(next)
    await page.sessions.give(page.request, response, key_id)
    return response


@router.post("/logout")
async def sign_out(action: Annotated[Action, Depends(open_action)]) -> Response:
    response = action.back("/login")
    response.delete_cookie(SESSION_COOKIE)
    return response

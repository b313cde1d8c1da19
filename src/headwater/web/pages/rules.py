"""A person's rules: made, tried on the last week, paused and deleted."""

from dataclasses import replace
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from headwater.errors import HeadwaterError, InputError
from headwater.model import Json
from headwater.people.rules import read_filter, read_week, try_filter
from headwater.store.people.rules import (
    Rule,
    RuleActions,
    Trial,
    add_rule,
    change_rule,
    get_rule,
    list_notifications,
    list_rules,
    remove_rule,
)
from headwater.store.people.subscriptions import list_subscriptions
from headwater.threads import showing
from headwater.web.pages.frame import Action, InUserAction, InUserPage, Page

router = APIRouter(prefix="/rules")

TOLD = 20
# What the form asks for, by the key of the filter: a value a line, as people write lists.
LISTS = (
    ("include_keywords", "Words, one of which must occur"),
    ("exclude_keywords", "Words that must not occur"),
    ("include_patterns", "Regular expressions, one of which must match"),
    ("authors", "Authors"),
    ("languages", "Languages (en, zh, …)"),
)
_EMPTY: dict[str, str | bool] = {
    **dict.fromkeys(("name", "source_id", "tags"), ""),
    **dict.fromkeys(("mute", "star", "read_later", "notify"), False),
}
DAYS = ("1", "7", "30", "never")


@router.get("")
async def rules_page(page: InUserPage) -> HTMLResponse:
    return await _show(page)


@router.post("")
async def try_or_make(action: InUserAction) -> Response:
    """The form has two buttons: one tries the rule, the other keeps it."""
    page = action.page
    written = _written(action)
    try:
        rule = _read(action, page)
        if action.text("do") == "try":
            store = page.context.store
            week, is_cut = await store.read(read_week, page.user.id, rule.source_ids, page.context.clock())
            trial = await showing.run(try_filter, rule.filter, week, is_cut=is_cut)
            return await _show(page, written=written, trial=trial)
        page.require("edit")
        made = await page.context.store.write(add_rule, rule, page.context.clock())
    except HeadwaterError as error:
        return await _show(page, written=written, problem=error.render(page.language), status=400)
    return action.back("/rules", page.t("rule {name} is saved", name=made.name))


@router.post("/{rule_id}/active")
async def switch(action: InUserAction, rule_id: int) -> Response:
    """Pause a rule, or resume it."""
    page = action.page
    page.require("edit")
    store = page.context.store
    rule = await store.read(get_rule, page.user.id, rule_id)
    await store.write(change_rule, replace(rule, is_active=not rule.is_active))
    return action.back("/rules")


@router.post("/{rule_id}/remove")
async def remove(action: InUserAction, rule_id: int) -> Response:
    page = action.page
    page.require("edit")
    await page.context.store.write(remove_rule, page.user.id, rule_id)
    return action.back("/rules", page.t("the rule is deleted"))


def _written(action: Action) -> Json:
    """The form as it was filled in, to be shown again."""
    names = ("name", "source_id", "tags", "read_later_days", *(key for key, _ in LISTS))
    boxes = ("mute", "star", "read_later", "notify")
    return {name: action.text(name) for name in names} | {name: bool(action.text(name)) for name in boxes}


def _read(action: Action, page: Page) -> Rule:
    filter_ = {
        key: values
        for key, _ in LISTS
        if (values := [line.strip() for line in action.text(key).splitlines() if line.strip()])
    }
    days = action.text("read_later_days")
    if days and days not in DAYS:
        raise InputError("{text} is not a number", text=days[:40])
    actions = RuleActions(
        mute=bool(action.text("mute")),
        star=bool(action.text("star")),
        read_later=bool(action.text("read_later")),
        read_later_days=_days(days),
        tags=tuple(tag.strip() for tag in action.text("tags").split(",") if tag.strip()),
        notify=bool(action.text("notify")),
    )
    sources = tuple(action.numbers("source_id"))
    # A rule that is only tried need not have a name yet.
    return Rule(0, page.user.id, action.text("name"), read_filter(filter_), sources, actions)


def _days(text: str) -> Any:
    return "never" if text == "never" else int(text or 7)


async def _show(
    page: Page,
    *,
    written: Json | None = None,
    trial: Trial | None = None,
    problem: str | None = None,
    status: int = 200,
) -> HTMLResponse:
    store, user = page.context.store, page.user
    return await page.show(
        "rules.html",
        status=status,
        rules=await store.read(list_rules, user.id),
        told=(await store.read(list_notifications, user.id, limit=TOLD))[:TOLD],
        subscriptions=await store.read(list_subscriptions, user.id),
        lists=LISTS,
        days=DAYS,
        written=written or _EMPTY,
        trial=trial,
        problem=problem,
    )

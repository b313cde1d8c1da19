"""Alerts: what needs a person, and who is told."""

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response
from sqlalchemy import Connection

from headwater.errors import InputError
from headwater.publish.alerts import KIND_NAMES, KINDS, changed_rules, tell_problem
from headwater.store.publishing.alerts import (
    Alert,
    AlertRules,
    get_rules,
    list_alerts,
    open_alerts,
    set_rules,
)
from headwater.store.publishing.targets import list_targets
from headwater.web.pages.frame import InAction, InPage, Page

router = APIRouter()

LISTED = 50


@router.get("/alerts")
async def alerts_page(page: InPage) -> HTMLResponse:
    return await _show(page)


@router.post("/alerts")
async def change(action: InAction) -> Response:
    page = action.page
    page.require("admin")
    days, minutes = action.decimal("failing_days"), action.decimal("every_minutes")
    watched = set(action.texts("kind"))
    try:
        rules = changed_rules(
            AlertRules(),
            targets=tuple(filter(None, action.texts("target"))),
            off=tuple(kind for kind in KINDS if kind not in watched),
            failing_days=days,
            every_minutes=minutes,
            quiet_from=action.text("quiet_from"),
            quiet_until=action.text("quiet_until"),
            zone=action.text("zone") or "UTC",
        )
        await page.context.store.write(set_rules, rules, page.context.clock())
    except InputError as error:
        return await _show(page, problem=error.render(page.language), status=400)
    return action.back("/alerts", page.t("saved"))


async def _show(page: Page, problem: str | None = None, status: int = 200) -> HTMLResponse:
    store = page.context.store
    holding = await store.read(open_alerts)
    over = [each for each in await store.read(_newest) if each.ended_at is not None]
    return await page.show(
        "alerts.html",
        status=status,
        alerts=[(each, tell_problem(each, page.language)) for each in reversed(holding)],
        over=[(each, tell_problem(each, page.language)) for each in over],
        rules=await store.read(get_rules),
        kinds=[(kind, page.t(name)) for kind, name in KIND_NAMES.items()],
        targets=await store.read(list_targets),
        problem=problem,
    )


def _newest(connection: Connection) -> list[Alert]:
    return list_alerts(connection, limit=LISTED)

"""`/api/alerts…`: what needs a person, and who is told."""

from typing import Annotated, ClassVar

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from headwater.language import preferred_language
from headwater.publish.alerts import changed_rules, tell_problem
from headwater.store.publishing.alerts import AlertRules, get_rules, list_alerts, open_alerts, set_rules
from headwater.views.alerts import AlertRulesView, AlertView, alert_json, alert_rules_json
from headwater.views.shape import Json
from headwater.web.api.auth import needs
from headwater.web.api.paging import Cursor, Limit, Next, decode_number, split_page
from headwater.web.api.problems import problem_responses
from headwater.web.context import InContext

router = APIRouter(prefix="/alerts", tags=["alerts"])

Names = Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=100)]
TimeOfDay = Annotated[str, Field(max_length=5)]


class Alerts(BaseModel):
    alerts: list[AlertView]
    next: Next


class RuleChanges(BaseModel):
    """What to change; what is left out stays as it is."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"targets": ["team"], "quiet_from": "22:00", "quiet_until": "07:00"}},
    )

    targets: Names | None = None
    off: Names | None = None
    failing_days: float | None = Field(default=None, allow_inf_nan=False)
    every_minutes: float | None = Field(default=None, allow_inf_nan=False)
    quiet_from: TimeOfDay | None = None
    quiet_until: TimeOfDay | None = None
    zone: Annotated[str, Field(max_length=100)] | None = None


@router.get(
    "",
    response_model=Alerts,
    dependencies=[needs("read")],
    responses=problem_responses(400),
    summary="List alerts",
)
async def list_(
    request: Request,
    context: InContext,
    cursor: Cursor = None,
    limit: Limit = 50,
    is_open: Annotated[bool, Query(alias="open", description="Only those that hold now.")] = False,
) -> Json:
    """What needs a person, newest first."""
    language = preferred_language(request.headers.get("accept-language", ""))
    if is_open:
        found, following = (await context.store.read(open_alerts))[::-1], None
    else:
        read = await context.store.read(list_alerts, before_id=decode_number(cursor), limit=limit + 1)
        page, following = split_page(read, limit, lambda alert: (alert.id,))
        found = list(page)
    return {
        "alerts": [alert_json(alert, tell_problem(alert, language)) for alert in found],
        "next": following,
    }


@router.get(
    "/rules",
    response_model=AlertRulesView,
    dependencies=[needs("read")],
    responses=problem_responses(),
    summary="Rules of alerts",
)
async def rules(context: InContext) -> Json:
    """Whom to tell, and of what."""
    return alert_rules_json(await context.store.read(get_rules))


@router.patch(
    "/rules",
    response_model=AlertRulesView,
    dependencies=[needs("admin")],
    responses=problem_responses(400),
    summary="Change the rules",
)
async def change(context: InContext, changes: RuleChanges) -> Json:
    """Change what is given."""
    return alert_rules_json(await context.store.write(_change, changes, context.clock()))


def _change(connection: Connection, changes: RuleChanges, now: float) -> AlertRules:
    given = changes.model_dump()
    lists = {key: tuple(given[key]) for key in ("targets", "off") if given[key] is not None}
    return set_rules(connection, changed_rules(get_rules(connection), **{**given, **lists}), now)

"""A problem that needs a person, and the rules by which problems are told."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from headwater.store.publishing.alerts import Alert, AlertRules
from headwater.views.shape import Json, Shape, Time, with_example


class AlertView(BaseModel):
    """A problem that needs a person."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: alert_json(_ALERT, "Example is gone: 410"))

    id: int
    kind: str
    subject: str = Field(description="What it is about: a source's number, a target's name, …")
    text: str = Field(description="The problem in a sentence.")
    data: dict[str, Any]
    since_at: Time
    seen_at: Time = Field(description="When it was last found to hold.")
    told_at: Time | None = Field(description="When it was put into a message; null: not yet.")
    ended_at: Time | None = Field(description="When it was over; null: it holds.")


class AlertRulesView(BaseModel):
    """Whom to tell, and of what."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: alert_rules_json(AlertRules(("team",))))

    targets: list[str] = Field(description="Where alerts are sent; empty: nothing is looked for.")
    off: list[str] = Field(description="Kinds that are not looked for.")
    failing_days: float = Field(description="For how long a source fails before it is told.")
    every_minutes: float = Field(description="At most one message in that time.")
    quiet_from: str = Field(description="From this time of day no message is sent; empty: no quiet hours.")
    quiet_until: str
    zone: str = Field(description="The time zone of the quiet hours.")


_alert_json: Shape[Alert] = Shape(AlertView, ("text",))
alert_rules_json: Shape[AlertRules] = Shape(
    AlertRulesView, targets=lambda rules: list(rules.targets), off=lambda rules: list(rules.off)
)


def alert_json(alert: Alert, text: str) -> Json:
    """`text`: the sentence that `publish.alerts.tell_problem` gives."""
    return _alert_json(alert, text=text)


_ALERT: Alert = Alert(
    id=1,
    kind="gone",
    subject="1",
    data={"id": 1, "name": "Example", "error": "410"},
    since_at=1_772_015_400.0,
    seen_at=1_772_019_000.0,
    told_at=1_772_015_460.0,
    ended_at=None,
    end_told_at=None,
)

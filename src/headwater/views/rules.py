"""A person's rule, its trial, and what rules tell."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from headwater.store.people.preferences import Days
from headwater.store.people.rules import Notification, Rule, RuleActions, Trial
from headwater.views.shape import Shape, Time, with_example


class RuleActionsView(BaseModel):
    """What a rule does with an item."""

    mute: bool = Field(description="It counts as read from the start.")
    star: bool
    read_later: bool
    read_later_days: Days
    tags: list[str]
    notify: bool = Field(description="It is listed under `GET /api/notifications`.")
    target: str | None = Field(description="A target that is told; of admins' rules only.")


class RuleView(BaseModel):
    """A rule for new items of your subscriptions."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: rule_json(_RULE))

    id: int
    name: str
    filter: dict[str, Any] = Field(
        description="What it looks for: a config of the step `filter_content`. All conditions must hold."
    )
    source_ids: list[int] = Field(description="Of these sources only; empty: of all your subscriptions.")
    actions: RuleActionsView
    is_active: bool
    matched: int = Field(description="How many items it has matched so far.")
    matched_at: Time | None = Field(description="When it last matched one; null: never.")
    created_at: Time


class TrialItemView(BaseModel):
    """An entry that a rule would have matched."""

    id: int
    source_id: int
    source_name: str
    title: str
    url: str | None
    item_at: Time


class TrialView(BaseModel):
    """What a rule would have matched of the last week."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: trial_json(_TRIAL))

    matched: int
    considered: int = Field(description="Your entries of the last week.")
    is_cut: bool = Field(description="There were more; only the newest were looked at.")
    examples: list[TrialItemView] = Field(description="The newest that it would have matched.")


class NotificationView(BaseModel):
    """Something that a rule tells you."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: notification_json(_NOTIFICATION))

    id: int
    item_id: int
    title: str
    url: str | None
    rule_name: str
    created_at: Time
    seen_at: Time | None = Field(description="null: you have not seen it yet.")


_actions_json: Shape[RuleActions] = Shape(RuleActionsView, tags=lambda actions: list(actions.tags))
rule_json: Shape[Rule] = Shape(
    RuleView,
    source_ids=lambda rule: list(rule.source_ids),
    actions=lambda rule: _actions_json(rule.actions),
)
_trial_item_json: Shape[Any] = Shape(TrialItemView)
trial_json: Shape[Trial] = Shape(
    TrialView, examples=lambda trial: [_trial_item_json(each) for each in trial.examples]
)
notification_json: Shape[Notification] = Shape(NotificationView)

_RULE: Rule = Rule(
    1,
    1,
    "No football",
    {"include_keywords": ["football"]},
    (),
    RuleActions(mute=True),
    True,
    12,
    1_772_015_400.0,
)
_TRIAL: Trial = Trial(0, 340, False, ())
_NOTIFICATION: Notification = Notification(
    1, 7, "A title", "https://example.org/1", "Bridges", 1_772_015_400.0, None
)

"""A target, and a message on its way to one."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from headwater.store.publishing.outbox import Delivery, DeliveryKind, Status
from headwater.store.publishing.targets import Target
from headwater.views.shape import Json, Shape, Time, with_example


class TargetView(BaseModel):
    """Where messages are sent."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: target_json(_TARGET, dict(_TARGET.config)))

    name: str
    kind: str = Field(description="webhook, email or apprise.")
    config: dict[str, Any] = Field(description="Secrets are shown as ***.")
    batch_minutes: float | None = Field(description="At most one message in that time; null: each at once.")
    batch_items: int = Field(description="The most items in one message.")
    created_at: Time
    updated_at: Time


class DeliveryView(BaseModel):
    """A message on its way to a target, or arrived."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: delivery_json(_DELIVERY))

    id: int
    target: str
    kind: DeliveryKind
    idempotency_key: str = Field(description="The same for every attempt.")
    title: str
    text: str
    status: Status
    attempts: int
    error_message: str | None
    due_at: Time | None = Field(description="When it is sent next; null: it has ended.")
    created_at: Time
    ended_at: Time | None


_target_json: Shape[Target] = Shape(TargetView, ("config",))
delivery_json: Shape[Delivery] = Shape(DeliveryView, idempotency_key=lambda delivery: delivery.key)


def target_json(target: Target, shown_config: Json) -> Json:
    """`shown_config`: its config with secrets masked, as `publish.targets.show_config` gives it."""
    return _target_json(target, config=shown_config)


_TARGET: Target = Target(
    "team",
    "email",
    {"recipients": ["ann@example.org"]},
    batch_minutes=60.0,
    created_at=1_767_225_600.0,
    updated_at=1_767_225_600.0,
)
_DELIVERY: Delivery = Delivery(
    id=1,
    target="team",
    kind="item",
    key="item-1-version-1-template-1-step-2",
    title="A title",
    text="In short.",
    html=None,
    data={},
    status="sent",
    attempts=1,
    error_message=None,
    due_at=None,
    created_at=1_772_015_460.0,
    ended_at=1_772_015_461.0,
)

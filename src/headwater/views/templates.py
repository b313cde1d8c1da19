"""A pipeline template, and a type of step."""

from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from headwater.store.pipelines.attaching import AttachedTemplate, Attachment, Scope
from headwater.store.pipelines.templates import Template
from headwater.views.shape import Json, Shape, Time, with_example


class StepView(BaseModel):
    """One stage of a template."""

    step_type: str
    is_critical: bool = Field(description="Its failure ends the run; else the run goes on without it.")
    config: dict[str, Any] = Field(description="What its type takes; secrets are shown as ***.")
    timeout_seconds: float | None = Field(description="null: the default of its type.")
    retries: int


class AttachmentView(BaseModel):
    """What a template is attached to."""

    scope: Scope = Field(description="source, folder, type, tag or everything.")
    value: str = Field(description="The source's number, or the name of the folder, type or tag; else empty.")


class TemplateView(BaseModel):
    """A pipeline: the steps that a run makes for one item."""

    model_config: ClassVar[ConfigDict] = with_example(
        lambda: template_json(_EXAMPLE, list(EXAMPLE_STEPS), [_ATTACHED])
    )

    id: int
    name: str
    description: str | None
    run_on_change: bool = Field(description="Changed items start it too.")
    steps: list[StepView]
    attachments: list[AttachmentView] = Field(description="Whose new items it runs for, 1,000 at most.")
    created_at: Time
    updated_at: Time


class SourcePipelineView(BaseModel):
    """A template that runs for a source's new items."""

    model_config: ClassVar[ConfigDict] = with_example(
        lambda: source_pipeline_json(AttachedTemplate(_EXAMPLE, (_ATTACHED,)))
    )

    template_id: int
    template_name: str
    by: list[AttachmentView] = Field(description="Why: it is attached to these.")


_attachment_json: Shape[Attachment] = Shape(AttachmentView)
_template_json: Shape[Template] = Shape(TemplateView, ("steps", "attachments"))


def template_json(template: Template, shown_steps: list[Json], attached: Sequence[Attachment]) -> Json:
    """`shown_steps`: its steps with their secrets masked, as `pipeline.templates.shown_steps` gives them."""
    return _template_json(
        template, steps=shown_steps, attachments=[_attachment_json(each) for each in attached]
    )


def source_pipeline_json(attached: AttachedTemplate) -> Json:
    return {
        "template_id": attached.template.id,
        "template_name": attached.template.name,
        "by": [_attachment_json(each) for each in attached.by],
    }


_ATTACHED: Attachment = Attachment(1, "folder", "News")
EXAMPLE_STEPS: tuple[Json, ...] = (
    {
        "step_type": "enrich_content",
        "is_critical": False,
        "config": {},
        "timeout_seconds": 60.0,
        "retries": 2,
    },
)
_EXAMPLE: Template = Template(
    1, "Read and send", None, EXAMPLE_STEPS, False, 1_767_225_600.0, 1_767_225_600.0
)

"""`/api/templates…`, `/api/steps`: what is done with new items."""

from dataclasses import asdict
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from headwater.collectors.types import find_type
from headwater.errors import InputError
from headwater.pipeline.registry import STEP_HANDLERS, is_installed
from headwater.pipeline.templates import (
    LONGEST_TIMEOUT_SECONDS,
    MOST_STEPS,
    shown_steps,
)
from headwater.pipeline.trying import TriedStep
from headwater.store.collecting.sources import get_source
from headwater.store.core.versions import version_of
from headwater.store.pipelines.attaching import (
    Attachment,
    Scope,
    attach,
    attachments_of,
    detach,
    order_templates,
    remove_template,
)
from headwater.store.pipelines.templates import (
    Template,
    add_template,
    check_template,
    get_template,
    list_templates,
)
from headwater.store.reading.items import get_item
from headwater.views.shape import Json
from headwater.views.templates import EXAMPLE_STEPS, TemplateView, template_json
from headwater.web.api.auth import needs
from headwater.web.api.json import JsonObject
from headwater.web.api.problems import problem_responses
from headwater.web.context import InContext
from headwater.web.etags import (
    NOT_MODIFIED,
    IfMatch,
    IfNoneMatch,
    answer_tagged,
    expected_version,
)
from headwater.web.saving import check_written, save_template
from headwater.web.trying import try_template

router = APIRouter(tags=["pipelines"])

TemplateId = Annotated[int, Path(ge=1, le=2**63 - 1, description="The template's number.")]
LONGEST_NUMBER = 18


class WrittenAttachment(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"scope": "folder", "value": "News"}}
    )

    scope: Scope = Field(description="source, folder, type, tag or everything.")
    value: Annotated[str, Field(max_length=2_000)] = Field(
        default="", description="The source's number, or the name of the folder, type or tag; else empty."
    )


class Templates(BaseModel):
    templates: list[TemplateView]


class Attachments(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"attachments": [{"scope": "everything", "value": ""}]}}
    )

    attachments: list[WrittenAttachment] = Field(max_length=1_000)


class Order(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"template_ids": [2, 1]}}
    )

    template_ids: list[Annotated[int, Field(ge=1, le=2**63 - 1)]] = Field(
        max_length=10_000, description="First to last; those that are left out come after them."
    )


class WrittenStep(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    step_type: Annotated[str, Field(max_length=200)]
    is_critical: bool = True
    config: JsonObject = Field(default_factory=dict)
    timeout_seconds: float | None = Field(default=None, gt=0, le=LONGEST_TIMEOUT_SECONDS, allow_inf_nan=False)
    retries: int | None = Field(default=None, ge=0, le=100)


class WrittenTemplate(BaseModel):
    """A template as it is to be. A config's value shown as *** keeps the secret that is stored."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"name": "Read and send", "steps": list(EXAMPLE_STEPS)}}
    )

    name: Annotated[str, Field(min_length=1, max_length=200)]
    description: Annotated[str, Field(max_length=2_000)] | None = None
    run_on_change: bool = False
    steps: list[WrittenStep] = Field(min_length=1, max_length=MOST_STEPS)


class StepType(BaseModel):
    """What a step can be."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={
            "example": {
                "step_type": "enrich_content",
                "installed": True,
                "extra": None,
                "retries": 2,
                "config_schema": {"type": "object"},
            }
        }
    )

    step_type: str
    installed: bool = Field(description="What it needs besides Headwater is there.")
    extra: str | None = Field(description="What to install for it: headwater[extra].")
    retries: int = Field(description="How often it is retried unless a template says.")
    config_schema: dict[str, Any] = Field(description="What its config takes, as JSON Schema.")


class StepTypes(BaseModel):
    steps: list[StepType]


@router.get("/steps", dependencies=[needs("read")], responses=problem_responses(), summary="Types of steps")
async def step_types() -> StepTypes:
    """What the steps of a template can be, plugins' too."""
    return StepTypes(
        steps=[
            StepType(
                step_type=name,
                installed=is_installed(step),
                extra=step.extra,
                retries=step.retries,
                config_schema=step.config_model.model_json_schema(),
            )
            for name, step in STEP_HANDLERS.items()
        ]
    )


@router.get(
    "/templates",
    response_model=Templates,
    dependencies=[needs("read")],
    responses=problem_responses(),
    summary="List templates",
)
async def list_(context: InContext) -> Json:
    """All templates, in the order in which they run for an item."""
    return {"templates": await context.store.read(_read_all)}


@router.post(
    "/templates",
    status_code=201,
    response_model=TemplateView,
    dependencies=[needs("admin")],
    responses=problem_responses(400, 409),
    summary="Add a template",
)
async def add(context: InContext, response: Response, written: WrittenTemplate) -> Json:
    """Add a template. Everything that can be wrong with it is said now."""
    template = await check_written(written.model_dump())
    added = await context.store.write(add_template, template, context.clock())
    response.headers["Location"] = f"/api/templates/{added.id}"
    return _shown(added, [])


@router.post(
    "/templates/validate",
    status_code=204,
    dependencies=[needs("admin")],
    responses=problem_responses(400, 409),
    summary="Check a template",
)
async def validate(
    context: InContext,
    written: WrittenTemplate,
    template_id: Annotated[
        int | None, Query(ge=1, le=2**63 - 1, description="Check it in the place of this template.")
    ] = None,
) -> None:
    """Say what is wrong with a template, as adding it would, without storing it."""
    template = await check_written(written.model_dump())
    await context.store.read(check_template, template, template_id)


class Try(BaseModel):
    """A template to try on one item."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"item_id": 7, "template": {"name": "x", "steps": list(EXAMPLE_STEPS)}}
        },
    )

    item_id: Annotated[int, Field(ge=1, le=2**63 - 1)]
    template: WrittenTemplate
    template_id: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = Field(
        default=None, description="Secrets shown as *** are this template's."
    )
    runtime_config: JsonObject = Field(default_factory=dict)


class TriedEntry(BaseModel):
    """What a step did with the item, or why it did not work."""

    step_type: str
    status: str = Field(
        description="completed, failed, or skipped: the item is not wanted, or it was not reached."
    )
    output_data: dict[str, Any] | None
    results: list[dict[str, Any]] = Field(description="What it made of the item, by kind.")
    error_message: str | None


class Tried(BaseModel):
    steps: list[TriedEntry]


@router.post(
    "/templates/try",
    dependencies=[needs("admin")],
    responses=problem_responses(400, 404),
    summary="Try a template",
)
async def try_(context: InContext, wanted: Try) -> Tried:
    """Run a template's steps on one item and show what each gives. Nothing is stored; nothing is published."""
    before = None
    if wanted.template_id is not None:
        before = await context.store.read(get_template, wanted.template_id)
    template = await check_written(wanted.template.model_dump(), before)
    item = await context.store.read(get_item, wanted.item_id)
    tried = await try_template(context, template, item, wanted.runtime_config)
    return Tried(steps=[_tried(each) for each in tried])


def _tried(step: TriedStep) -> TriedEntry:
    return TriedEntry(
        step_type=step.step_type,
        status=step.status,
        output_data=step.output,
        results=[{"key": result.key, **asdict(result)} for result in step.results],
        error_message=step.error_message,
    )


@router.get(
    "/templates/{template_id}",
    response_model=TemplateView,
    dependencies=[needs("read")],
    responses={**problem_responses(404), **NOT_MODIFIED},
    summary="One template",
)
async def one(
    request: Request, context: InContext, template_id: TemplateId, if_none_match: IfNoneMatch = None
) -> Response:
    """A template and its steps."""
    template, attached = await context.store.read(_read_one, template_id)
    return answer_tagged(request, _shown(template, attached), version_of(template))


@router.put(
    "/templates/{template_id}",
    dependencies=[needs("admin")],
    response_model=TemplateView,
    responses=problem_responses(400, 404, 409, 412),
    summary="Replace a template",
)
async def replace(
    request: Request,
    context: InContext,
    template_id: TemplateId,
    written: WrittenTemplate,
    if_match: IfMatch = None,
) -> Response:
    """Replace a template. Runs that have begun keep the steps they began with."""
    expected = expected_version(if_match)
    await save_template(context.store, template_id, written.model_dump(), expected, context.clock())
    template, attached = await context.store.read(_read_one, template_id)
    return answer_tagged(request, _shown(template, attached), version_of(template))


@router.delete(
    "/templates/{template_id}",
    status_code=204,
    dependencies=[needs("admin")],
    responses=problem_responses(404),
    summary="Remove a template",
)
async def remove(context: InContext, template_id: TemplateId) -> None:
    """Remove a template with all its attachments. Its runs stay, and those under way go on."""
    await context.store.write(remove_template, template_id)


@router.post(
    "/templates/order",
    response_model=Templates,
    dependencies=[needs("admin")],
    responses=problem_responses(404),
    summary="Order templates",
)
async def order(context: InContext, wanted: Order) -> Json:
    """Set the order in which templates run for an item."""
    await context.store.write(order_templates, wanted.template_ids)
    return {"templates": await context.store.read(_read_all)}


@router.post(
    "/templates/{template_id}/attach",
    response_model=TemplateView,
    dependencies=[needs("admin")],
    responses=problem_responses(400, 404),
    summary="Attach a template",
)
async def attach_(context: InContext, template_id: TemplateId, wanted: Attachments) -> Json:
    """Run it for the new items of these as well. No other template is detached."""
    return await context.store.write(_attach, template_id, wanted, context.clock())


@router.post(
    "/templates/{template_id}/detach",
    response_model=TemplateView,
    dependencies=[needs("admin")],
    responses=problem_responses(400, 404),
    summary="Detach a template",
)
async def detach_(context: InContext, template_id: TemplateId, wanted: Attachments) -> Json:
    """Run it no longer by these attachments; the others stay."""
    return await context.store.write(_detach, template_id, wanted)


def _attach(connection: Connection, template_id: int, wanted: Attachments, now: float) -> Json:
    for each in wanted.attachments:
        attach(connection, template_id, each.scope, [_value(connection, each)], now)
    return _shown(*_read_one(connection, template_id))


def _detach(connection: Connection, template_id: int, wanted: Attachments) -> Json:
    get_template(connection, template_id)
    for each in wanted.attachments:
        detach(connection, template_id, each.scope, [each.value])
    return _shown(*_read_one(connection, template_id))


def _value(connection: Connection, wanted: WrittenAttachment) -> str:
    """What is meant, if it is there: a source that is missing or a type that does not exist is an error."""
    if wanted.scope == "type":
        return find_type(wanted.value).name
    if wanted.scope == "source":
        if not (wanted.value.isdecimal() and len(wanted.value) <= LONGEST_NUMBER):
            raise InputError("{value} is not the number of a source", value=wanted.value)
        return str(get_source(connection, int(wanted.value)).id)
    return wanted.value


def _read_all(connection: Connection) -> list[Json]:
    return [
        _shown(template, attachments_of(connection, template.id)) for template in list_templates(connection)
    ]


def _read_one(connection: Connection, template_id: int) -> tuple[Template, list[Attachment]]:
    return get_template(connection, template_id), attachments_of(connection, template_id)


def _shown(template: Template, attached: list[Attachment]) -> Json:
    return template_json(template, shown_steps(template), attached)

"""`/api/templates…`, `/api/steps`: what is done with new items."""

from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from headwater.pipeline.registry import STEP_HANDLERS, is_installed
from headwater.pipeline.templates import (
    LONGEST_TIMEOUT_SECONDS,
    MOST_STEPS,
    keep_secrets,
    read_template,
    shown_steps,
)
from headwater.store.templates import (
    Template,
    add_template,
    change_template,
    get_template,
    list_templates,
    remove_template,
    sources_by_template,
)
from headwater.web.api.auth import needs
from headwater.web.api.json import JsonObject
from headwater.web.api.problems import problem_responses
from headwater.web.api.times import Time
from headwater.web.context import InContext

router = APIRouter(tags=["pipelines"])

TemplateId = Annotated[int, Path(ge=1, le=2**63 - 1, description="The template's number.")]
_STEPS: Any = [
    {"step_type": "enrich_content", "is_critical": False, "config": {}, "timeout_seconds": 60.0, "retries": 2}
]


class StepEntry(BaseModel):
    """One stage of a template."""

    step_type: str
    is_critical: bool = Field(description="Its failure ends the run; else it is skipped.")
    config: dict[str, Any] = Field(description="What its type takes; secrets are starred out.")
    timeout_seconds: float | None = Field(description="null: as its type has it.")
    retries: int


class TemplateEntry(BaseModel):
    """A pipeline: the steps that a run makes for one item."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={
            "example": {
                "id": 1,
                "name": "Read and send",
                "description": None,
                "run_on_change": False,
                "steps": _STEPS,
                "source_count": 12,
                "created_at": "2026-01-01T00:00:00.000Z",
                "updated_at": "2026-01-01T00:00:00.000Z",
            }
        }
    )

    id: int
    name: str
    description: str | None
    run_on_change: bool = Field(description="Changed items start it too.")
    steps: list[StepEntry]
    source_count: int = Field(description="How many sources it is attached to.")
    created_at: Time
    updated_at: Time


class Templates(BaseModel):
    templates: list[TemplateEntry]


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
        extra="forbid", json_schema_extra={"example": {"name": "Read and send", "steps": _STEPS}}
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
    retries: int = Field(description="How often it is tried again unless a template says.")
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
    "/templates", dependencies=[needs("read")], responses=problem_responses(), summary="List templates"
)
async def list_(context: InContext) -> Templates:
    """All templates, by number."""
    return Templates(templates=await context.store.read(_read_all))


@router.post(
    "/templates",
    status_code=201,
    dependencies=[needs("admin")],
    responses=problem_responses(400, 409),
    summary="Add a template",
)
async def add(context: InContext, response: Response, written: WrittenTemplate) -> TemplateEntry:
    """Add a template. Everything that can be wrong with it is said now."""
    template = read_template(written.model_dump())
    added = await context.store.write(add_template, template, context.clock())
    response.headers["Location"] = f"/api/templates/{added.id}"
    return _entry(added, 0)


@router.post(
    "/templates/validate",
    status_code=204,
    dependencies=[needs("admin")],
    responses=problem_responses(400),
    summary="Check a template",
)
async def validate(written: WrittenTemplate) -> None:
    """Say what is wrong with a template, without storing it."""
    read_template(written.model_dump())


@router.get(
    "/templates/{template_id}",
    dependencies=[needs("read")],
    responses=problem_responses(404),
    summary="One template",
)
async def one(context: InContext, template_id: TemplateId) -> TemplateEntry:
    """A template and its steps."""
    return await context.store.read(_read_one, template_id)


@router.put(
    "/templates/{template_id}",
    dependencies=[needs("admin")],
    responses=problem_responses(400, 404, 409),
    summary="Replace a template",
)
async def replace(context: InContext, template_id: TemplateId, written: WrittenTemplate) -> TemplateEntry:
    """Replace a template. Runs that have begun keep the steps they began with."""
    return await context.store.write(_replace, template_id, written.model_dump(), context.clock())


@router.delete(
    "/templates/{template_id}",
    status_code=204,
    dependencies=[needs("admin")],
    responses=problem_responses(404),
    summary="Remove a template",
)
async def remove(context: InContext, template_id: TemplateId) -> None:
    """Take a template away, from its sources too. Its runs stay, and those under way go on."""
    await context.store.write(remove_template, template_id)


def _read_all(connection: Connection) -> list[TemplateEntry]:
    counts = sources_by_template(connection)
    return [_entry(template, counts.get(template.id, 0)) for template in list_templates(connection)]


def _read_one(connection: Connection, template_id: int) -> TemplateEntry:
    return _entry(get_template(connection, template_id), sources_by_template(connection).get(template_id, 0))


def _replace(connection: Connection, template_id: int, data: dict[str, Any], now: float) -> TemplateEntry:
    template = read_template(keep_secrets(data, get_template(connection, template_id)))
    change_template(connection, template_id, template, now)
    return _read_one(connection, template_id)


def _entry(template: Template, source_count: int) -> TemplateEntry:
    return TemplateEntry(
        id=template.id,
        name=template.name,
        description=template.description,
        run_on_change=template.run_on_change,
        steps=[StepEntry(**step) for step in shown_steps(template)],
        source_count=source_count,
        created_at=template.created_at,
        updated_at=template.updated_at,
    )

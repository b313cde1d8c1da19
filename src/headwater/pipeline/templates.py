"""Reading templates as people write them: everything that can be wrong is said when a template is saved.

Every message names the step by its number and type, and the field.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from headwater.collectors.base import is_secret, shown_config
from headwater.collectors.validation_errors import describe_mistake
from headwater.errors import InputError, NotFoundError, Text
from headwater.pipeline.examples import PLACEHOLDERS
from headwater.pipeline.registry import find_step, is_installed
from headwater.pipeline.steps.base import Step
from headwater.store.pipelines.templates import NewTemplate, Template
from headwater.wording import NOTHING

MOST_STEPS = 50
STARS = "***"  # what stands for a secret wherever a config is shown
LONGEST_TIMEOUT_SECONDS = 86_400.0

MOST_CHARACTERS = 200_000
DEEPEST = 50  # levels of lists and objects in one another


class _WrittenStep(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    step_type: str
    is_critical: bool = True
    config: dict[str, Any] = Field(default_factory=dict)
    timeout_seconds: float | None = Field(default=None, gt=0, le=LONGEST_TIMEOUT_SECONDS)
    retries: int | None = Field(default=None, ge=0, le=100)


class _WrittenTemplate(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = Field(min_length=1, max_length=200)
    description: str | None = None
    run_on_change: bool = False
    steps: list[Any] = Field(min_length=1, max_length=MOST_STEPS)


def read_template(data: Any, name: str | None = None) -> NewTemplate:
    """A template from what JSON or TOML gave; InputError names the first thing that is wrong.

    A list is the steps alone. `name` is for a template that does not say its own.
    """
    if isinstance(data, list):
        data = {"steps": data}
    if not isinstance(data, Mapping):
        raise InputError("a template is an object with a name and steps, or a list of steps")
    if name is not None:
        data = {"name": name, **data}
    _refuse_size(data)
    try:
        written = _WrittenTemplate.model_validate(data)
    except ValidationError as error:
        raise InputError("template: {problem}", problem=_first_problem(error, _WrittenTemplate)) from None
    steps = [_read_step(number, step) for number, step in enumerate(written.steps, start=1)]
    return NewTemplate(
        name=written.name,
        description=written.description,
        run_on_change=written.run_on_change,
        steps=tuple(step.stored for step in steps),
        outlets=tuple(step.outlet for step in steps if step.outlet is not None),
        targets=tuple(step.target for step in steps if step.target is not None),
    )


class _ReadStep(NamedTuple):
    """A step as it is stored, and the outlet and the target that it names."""

    stored: dict[str, Any]
    outlet: str | None
    target: str | None


def _read_step(number: int, data: Any) -> _ReadStep:
    if not isinstance(data, Mapping):
        raise InputError('step {step}: a step is an object: {{"step_type": "enrich_content"}}', step=number)
    named = data.get("step_type")
    label = f"{number} ({named})" if isinstance(named, str) else str(number)
    try:
        written = _WrittenStep.model_validate(data)
        step = find_step(written.step_type)
        config = step.config_model.model_validate(written.config)
        step.check(config)
    except ValidationError as error:
        model: type[BaseModel] = _WrittenStep
        prefix = ""
        if error.title != _WrittenStep.__name__:
            model, prefix = step.config_model, "config."
        raise InputError(
            "step {step}: {problem}", step=label, problem=_first_problem(error, model, prefix)
        ) from None
    except (InputError, NotFoundError) as error:
        problem = Text(error.template, **error.values)
        raise InputError("step {step}: {problem}", step=label, problem=problem) from None
    _refuse_missing(label, step)
    _refuse_placeholders(label, written.config)
    stored = {
        "step_type": written.step_type,
        "is_critical": written.is_critical,
        "config": written.config,
        "timeout_seconds": written.timeout_seconds,
        "retries": step.retries if written.retries is None else written.retries,
    }
    return _ReadStep(stored, step.outlet_of(config), step.target_of(config))


def _refuse_size(data: Any) -> None:
    """InputError for a template that takes long to check, or that nothing can show."""
    level = [data]
    size = 0
    for _ in range(DEEPEST):
        size += sum(len(each) if isinstance(each, str | Mapping | list) else 1 for each in level)
        if size > MOST_CHARACTERS:
            raise InputError("template: it is longer than {limit} characters", limit=MOST_CHARACTERS)
        level = [
            inside
            for each in level
            if isinstance(each, Mapping | list)
            for inside in (each.values() if isinstance(each, Mapping) else each)
        ]
        if not level:
            return
    raise InputError("template: it is nested more than {limit} levels deep", limit=DEEPEST)


def _refuse_missing(label: str, step: Step) -> None:
    if not is_installed(step):
        raise InputError(
            "step {step} needs what is not installed: pip install 'headwater[{extra}]'",
            step=label,
            extra=step.extra,
        )


def _refuse_placeholders(label: str, config: Any) -> None:
    """What an example says in the place of something of one's own."""
    for value in config.values() if isinstance(config, Mapping) else config:
        if isinstance(value, Mapping | list):
            _refuse_placeholders(label, value)
        for placeholder in PLACEHOLDERS:
            if isinstance(value, str) and placeholder in value:
                raise InputError(
                    "step {step}: put your own in the place of {placeholder}",
                    step=label,
                    placeholder=placeholder,
                )


def _first_problem(error: ValidationError, model: type[BaseModel], prefix: str = "") -> Text:
    first = error.errors()[0]
    field = prefix + ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return Text(
            "there is no field {field}; it takes {known}",
            field=field,
            known=", ".join(sorted(model.model_fields)) or NOTHING,
        )
    if first["type"] == "missing":
        return Text("the field {field} is missing", field=field)
    hidden = not first["loc"] or any(is_secret(str(part), model) for part in first["loc"])
    return Text(
        "{field} = {value} is wrong: {problem}",
        field=field or "*",
        value="***" if hidden else first["input"],
        problem=describe_mistake(first),
    )


def shown_steps(template: Template) -> list[dict[str, Any]]:
    """A template's steps as they may be shown: whatever can hold a secret is starred out."""
    shown = []
    for step in template.steps:
        try:
            model: type[BaseModel] = find_step(step["step_type"]).config_model
        except NotFoundError:  # its plugin is gone
            model = BaseModel
        shown.append({**step, "config": shown_config(step["config"], model)})
    return shown


def with_secrets(steps: Any, template: Template) -> Any:
    """Steps as a person sent them back, with the secrets they were shown as stars.

    A step is the one that was shown if it stands in the same place and is of the same type, or is the only one of its
    type before and after. Stars of any other step stand for nothing and are refused.
    """
    if not isinstance(steps, list):
        return steps
    shown = shown_steps(template)
    return [_with_secrets(number, step, steps, shown, template) for number, step in enumerate(steps)]


def _with_secrets(
    place: int, step: Any, steps: list[Any], shown: list[dict[str, Any]], template: Template
) -> Any:
    if not isinstance(step, Mapping) or not isinstance(step.get("config"), Mapping):
        return step
    before = _place_before(place, step.get("step_type"), steps, shown)
    config = dict(step["config"])
    for key, value in config.items():
        if before is not None and value == shown[before]["config"].get(key):
            config[key] = template.steps[before]["config"][key]
        elif value == STARS:
            raise InputError(
                "step {step}: config.{key} is ***, but no secret is stored for it; enter the secret",
                step=f"{place + 1} ({step.get('step_type')})",
                key=key,
            )
    return {**step, "config": config}


def _place_before(place: int, step_type: Any, steps: list[Any], shown: list[dict[str, Any]]) -> int | None:
    if place < len(shown) and shown[place]["step_type"] == step_type:
        return place
    places = [number for number, each in enumerate(shown) if each["step_type"] == step_type]
    now = sum(isinstance(each, Mapping) and each.get("step_type") == step_type for each in steps)
    return places[0] if len(places) == 1 and now == 1 else None

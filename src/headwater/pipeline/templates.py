"""Reading templates as people write them: everything that can be wrong is said when a template is saved.

Every message names the step by its number and type, and the field.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from headwater.collectors.base import is_secret, shown_config
from headwater.errors import InputError, NotFoundError, Text
from headwater.pipeline.examples import PLACEHOLDERS
from headwater.pipeline.registry import find_step, is_installed
from headwater.pipeline.steps.base import Step
from headwater.store.templates import NewTemplate, Template
from headwater.wording import NOTHING

MOST_STEPS = 50
STARS = "***"  # what stands for a secret wherever a config is shown
LONGEST_TIMEOUT_SECONDS = 86_400.0


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


def read_template(data: Any) -> NewTemplate:
    """A template from what JSON or TOML gave; InputError names the first thing that is wrong."""
    try:
        written = _WrittenTemplate.model_validate(data)
    except ValidationError as error:
        raise InputError("template: {problem}", problem=_first_problem(error, _WrittenTemplate)) from None
    steps = [_read_step(number, step) for number, step in enumerate(written.steps, start=1)]
    return NewTemplate(
        name=written.name,
        description=written.description,
        run_on_change=written.run_on_change,
        steps=tuple(step for step, _ in steps),
        outlets=tuple(outlet for _, outlet in steps if outlet is not None),
    )


def _read_step(number: int, data: Any) -> tuple[dict[str, Any], str | None]:
    """A step as it is stored, and the outlet to which it publishes."""
    named = data.get("step_type") if isinstance(data, Mapping) else None
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
    return stored, step.outlet_of(config)


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
        problem=first["msg"],
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
                "step {step}: config.{key} is stars, and there is no secret here that they stand for; write it out",
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

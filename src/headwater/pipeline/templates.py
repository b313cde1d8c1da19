"""Reading templates as people write them: everything that can be wrong is said when a template is saved.

Every message names the step by its number and type, and the field.
"""

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from headwater.collectors.base import is_secret, shown_config
from headwater.errors import InputError, NotFoundError, Text
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


def keep_secrets(data: Any, before: Template) -> Any:
    """What somebody wrote, with the secrets that are stored where it shows their stars."""
    if not isinstance(data, Mapping) or not isinstance(data.get("steps"), list):
        return data
    steps = [
        _with_secrets(step, old) if old is not None else step
        for step, old in zip_longest(data["steps"], before.steps[: len(data["steps"])])
    ]
    return {**data, "steps": steps}


def _with_secrets(step: Any, old: Mapping[str, Any]) -> Any:
    if not isinstance(step, Mapping) or step.get("step_type") != old["step_type"]:
        return step
    config = step.get("config")
    if not isinstance(config, Mapping):
        return step
    kept = {key: old["config"].get(key, value) if value == STARS else value for key, value in config.items()}
    return {**step, "config": kept}


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
        raise InputError("step {step}: {problem}", step=label, problem=error.render()) from None
    _refuse_missing(label, step)
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

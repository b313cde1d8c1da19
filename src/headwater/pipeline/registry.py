"""Which step types there are: those in `steps/`, one module each, named as the type, and those of plugins.

A plugin's distribution names its step types by entry points of the group `headwater.steps`. Nothing is imported
before it is asked for, and a plugin that cannot be imported is left out with a warning.
"""

import importlib
import importlib.util
import logging
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from headwater.errors import NotFoundError
from headwater.pipeline import steps
from headwater.pipeline.steps.base import Step

log = logging.getLogger(__name__)

GROUP = "headwater.steps"


class StepHandlers(Mapping[str, Step]):
    """The step types by name, each made when it is first asked for."""

    def __getitem__(self, step_type: str) -> Step:
        handler = _handler(step_type)
        if handler is None:
            raise KeyError(step_type)
        return handler

    def __iter__(self) -> Iterator[str]:
        return (name for name in sorted({*_modules(), *_entry_points()}) if _handler(name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


STEP_HANDLERS: Mapping[str, Step] = StepHandlers()


def find_step(step_type: str) -> Step:
    """The step type of this name."""
    try:
        return STEP_HANDLERS[step_type]
    except KeyError:
        raise NotFoundError(
            "there is no step type {type}; there are {known}", type=step_type, known=", ".join(STEP_HANDLERS)
        ) from None


def is_installed(step: Step) -> bool:
    """Whether what the step type needs besides Headwater is there."""
    return step.needs is None or importlib.util.find_spec(step.needs) is not None


@cache
def _handler(step_type: str) -> Step | None:
    module = _modules().get(step_type)
    if module is not None:
        for value in vars(importlib.import_module(module)).values():
            if isinstance(value, type) and getattr(value, "step_type", None) == step_type:
                kind: type[Step] = value
                return kind()
        return None  # a module that steps share
    point = _entry_points().get(step_type)
    return None if point is None else _load(point)


def _load(point: EntryPoint) -> Step | None:
    try:
        kind = point.load()
        step = kind()
    except Exception as error:  # noqa: BLE001 - whatever a plugin does wrong, the others go on
        log.warning("the step type %s of a plugin (%s) cannot be used: %s", point.name, point.value, error)
        return None
    if not isinstance(step, Step) or step.step_type != point.name:
        log.warning("%s is no step type named %s", point.value, point.name)
        return None
    return step


@cache
def _modules() -> dict[str, str]:
    return {
        found.name: f"{steps.__name__}.{found.name}"
        for found in pkgutil.iter_modules(steps.__path__)
        if found.name != "base"
    }


@cache
def _entry_points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}

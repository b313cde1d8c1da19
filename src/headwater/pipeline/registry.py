"""Which step types there are: those in `steps/`, one module each, named as the type, and those of plugins.

Nothing is imported before it is asked for, and a plugin that cannot be used is left out (see headwater.plugins).
"""

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache

from headwater.errors import NotFoundError, Text
from headwater.pipeline import steps
from headwater.pipeline.steps.base import Step, StepConfig
from headwater.plugins import STEPS, Plugins, load_plugins


class StepHandlers(Mapping[str, Step]):
    """The step types by name, each made when it is first asked for."""

    def __getitem__(self, step_type: str) -> Step:
        handler = _handler(step_type)
        if handler is None:
            raise KeyError(step_type)
        return handler

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*own_step_types(), *step_plugins().usable}))

    def __len__(self) -> int:
        return sum(1 for _ in self)


STEP_HANDLERS: Mapping[str, Step] = StepHandlers()


def find_step(step_type: str) -> Step:
    """The step type of this name."""
    try:
        return STEP_HANDLERS[step_type]
    except KeyError:
        if disabled := step_plugins().why_not(step_type):
            raise NotFoundError("{problem}", problem=disabled.render()) from None
        raise NotFoundError(
            "there is no step type {type}; there are {known}", type=step_type, known=", ".join(STEP_HANDLERS)
        ) from None


def is_installed(step: Step) -> bool:
    """Whether what the step type needs besides Headwater is there."""
    return step.needs is None or importlib.util.find_spec(step.needs) is not None


@cache
def own_step_types() -> frozenset[str]:
    """The names of Headwater's own: they have two words; what steps share is in modules of one."""
    return frozenset(found.name for found in pkgutil.iter_modules(steps.__path__) if "_" in found.name)


def step_plugins() -> Plugins:
    """The step types that other packages bring."""
    return load_plugins(STEPS, Step, own_step_types(), _find_fault)


def _find_fault(name: str, loaded: type[Step]) -> Text | None:
    """What is wrong with a step type that a package brings, beyond its being one."""
    named = getattr(loaded, "step_type", None)
    if named != name:
        return Text("its step_type is {type}, not {name}", type=named, name=name)
    model: type = loaded.config_model
    if not issubclass(model, StepConfig):
        return Text("its config_model does not extend StepConfig")
    loaded()  # what cannot be made cannot be used
    return None


@cache
def _handler(step_type: str) -> Step | None:
    if step_type in own_step_types():
        module = importlib.import_module(f"{steps.__name__}.{step_type}")
        kinds = (
            value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Step)
        )
        kind: type[Step] = next(kind for kind in kinds if getattr(kind, "step_type", None) == step_type)
        return kind()
    plugin = step_plugins().usable.get(step_type)
    return None if plugin is None else plugin.loaded()

"""What other packages add, source types and step types alike, those that are disabled among them."""

from dataclasses import dataclass
from typing import Literal

from headwater.collectors.types import disabled_types, source_types
from headwater.errors import Text
from headwater.pipeline.registry import step_plugins


@dataclass(frozen=True, slots=True)
class ListedPlugin:
    kind: Literal["collector", "step"]
    name: str
    package: str
    problem: Text | None = None  # why it is disabled


def list_plugins() -> list[ListedPlugin]:
    steps = step_plugins()
    return [
        *(ListedPlugin("collector", kind.name, kind.package) for kind in source_types() if kind.package),
        *(ListedPlugin("collector", each.name, each.package, each.problem) for each in disabled_types()),
        *(ListedPlugin("step", plugin.name, plugin.package) for plugin in steps.usable.values()),
        *(ListedPlugin("step", each.name, each.package, each.problem) for each in steps.disabled),
    ]

"""What other packages add to Headwater by entry points: collectors (`headwater.collectors`), steps (`headwater.steps`)
and rules for pasted addresses (`headwater.address_rules`).

Plugins are looked for when first asked for, and then once a process. A plugin that cannot be used is disabled with a
message that names its package and what is wrong; asking never raises, and no other plugin notices.
"""

import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from headwater.errors import Text
from headwater.language import Language, translate

log = logging.getLogger(__name__)

COLLECTORS = "headwater.collectors"
STEPS = "headwater.steps"
ADDRESS_RULES = "headwater.address_rules"

Check = Callable[[str, type], Text | None]


@dataclass(frozen=True, slots=True)
class Plugin:
    """A class that another package brings, found sound. `package` is that package's name and version."""

    name: str
    package: str
    loaded: type


@dataclass(frozen=True, slots=True)
class DisabledPlugin:
    name: str
    package: str
    problem: Text

    def render(self, language: Language | None = None) -> str:
        return translate("the plugin {name} of {package} is disabled: {problem}", language).format(
            name=self.name, package=self.package, problem=self.problem.render(language)
        )


@dataclass(frozen=True, slots=True)
class Plugins:
    usable: Mapping[str, Plugin]
    disabled: tuple[DisabledPlugin, ...] = ()

    def why_not(self, name: str) -> DisabledPlugin | None:
        """The plugin of this name that is disabled."""
        return next((plugin for plugin in self.disabled if plugin.name == name), None)


def _nothing_wrong(name: str, loaded: type) -> Text | None:
    return None


@cache
def load_plugins(
    group: str, base: type, reserved: frozenset[str] = frozenset(), check: Check = _nothing_wrong
) -> Plugins:
    """The plugins of a group whose classes extend `base`, by name; none of them has a `reserved` name.

    `check` looks at a plugin's name and class and says what is wrong with it beyond that, if anything is. Whatever
    it raises disables the plugin too.
    """
    found: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=group):
        found.setdefault(entry.name, []).append(entry)
    usable: dict[str, Plugin] = {}
    disabled: list[DisabledPlugin] = []
    for name, entries in sorted(found.items()):
        package = ", ".join(sorted(map(_package, entries)))
        outcome = _load(name, entries, base, reserved, check)
        if isinstance(outcome, Text):
            disabled.append(DisabledPlugin(name, package, outcome))
            log.warning("%s", disabled[-1].render("en"))
        else:
            usable[name] = Plugin(name, package, outcome)
    return Plugins(usable, tuple(disabled))


def _load(
    name: str, entries: list[EntryPoint], base: type, reserved: frozenset[str], check: Check
) -> type | Text:
    """The class, or what is wrong."""
    if name in reserved:
        return Text("{name} is built in; a plugin cannot replace it", name=name)
    if len(entries) > 1:
        return Text("{count} packages bring one of this name; uninstall all but one", count=len(entries))
    try:
        loaded = entries[0].load()
        if not isinstance(loaded, type) or not issubclass(loaded, base):
            return Text(
                "{value} is not a class that extends {base}", value=entries[0].value, base=base.__name__
            )
        if inspect.isabstract(loaded):
            missing = ", ".join(sorted(getattr(loaded, "__abstractmethods__", ())))
            return Text("{value} does not define {missing}", value=entries[0].value, missing=missing)
        return check(name, loaded) or loaded
    except (
        BaseException
    ) as error:  # whatever it raises: SystemExit and KeyboardInterrupt would end the command
        log.debug("plugin %s", name, exc_info=True)
        return Text("{kind}: {problem}", kind=type(error).__name__, problem=" ".join(str(error).split()))


def load_texts(group: str) -> list[tuple[str, str]]:
    """The texts that packages bring in a group, each after its package. One that cannot be had is left out."""
    found = []
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        try:
            text = entry.load()
        except BaseException:  # whatever it raises: SystemExit and KeyboardInterrupt would end the command
            log.warning("the plugin %s of %s cannot be loaded", entry.name, _package(entry), exc_info=True)
            continue
        if isinstance(text, str):
            found.append((_package(entry), text))
        else:
            log.warning("the plugin %s of %s is not a text", entry.name, _package(entry))
    return found


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value

"""Help as people read it: commands grouped by task, and a plain word for what an option takes."""

from pathlib import Path
from typing import Any, get_args

from typer.core import TyperArgument, TyperGroup

from headwater.cli.output import BIGGEST
from headwater.language import translate as t

START = t("Get started")
SOURCES = t("Sources")
COLLECTING = t("Collecting")
READING = t("Items and feeds")
PIPELINES = t("Pipelines")
UPKEEP = t("Administration")

_HELP_NAMES = ["-h", "--help"]
_WORDS: dict[Any, str] = {str: "TEXT", int: "N", float: "N", Path: "FILE"}


# The groups of commands have their place among the commands, which typer puts first.
ORDER = (
    *("demo", "serve", "status", "doctor"),
    *(
        "source",
        "catalogue",
        "import",
        "export",
        "discover",
        "parse",
        "scrape",
        "types",
        "sitemap-to-feed",
        "sitemap",
    ),
    *("collect", "refresh", "explain", "statistics", "simulate", "tune"),
    *("items", "rule", "cursor", "digest", "outlet", "publish"),
    *("gallery", "pipeline", "runs", "target", "worker"),
    *(
        "config",
        "alert",
        "user",
        "key",
        "session",
        "sign-in-link",
        "upkeep",
        "backup",
        "restore",
        "migrate-to",
        "mcp",
        "plugins",
    ),
)


def arrange(root: Any) -> Any:
    """The command itself with its commands in the order in which people read of them."""
    others = (name for name in root.commands if name not in ORDER)
    root.commands = {name: root.commands[name] for name in (*ORDER, *others)}
    return tidy(root)


def tidy(command: Any) -> Any:
    """A command, and all under it, whose help shows no types and no limits that only a database cares about."""
    help_option = command.get_help_option(command.context_class(command, help_option_names=_HELP_NAMES))
    for parameter in (*command.params, help_option):
        if isinstance(parameter, TyperArgument):
            vars(parameter)["display_type_rich"] = _nothing  # its name says it all
            parameter.metavar = parameter.metavar or str(parameter.name).upper()
        elif parameter.is_flag:
            parameter.metavar = ""
        elif parameter.metavar is None:
            parameter.metavar = _word_for(parameter.type_descriptor)
        if getattr(parameter, "max", None) == BIGGEST:  # which is checked all the same
            parameter.min = parameter.max = None
    if isinstance(command, TyperGroup):
        for each in command.commands.values():
            tidy(each)
    return command


def _nothing(ctx: Any) -> None:
    return None


def _word_for(kind: Any) -> str | None:
    if kind.is_choice:
        return "|".join(str(getattr(each, "value", each)) for each in kind.choices)
    kinds = [kind.annotation, *get_args(kind.annotation)]
    return next((_WORDS[each] for each in kinds if each in _WORDS), None)

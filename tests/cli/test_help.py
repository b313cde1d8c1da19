"""Help for people: grouped by task, without types and limits that mean nothing to them."""

import itertools
from collections.abc import Iterator
from typing import Any

import typer

from headwater.cli.app import app
from headwater.cli.help import ORDER, SOURCES, arrange, tidy


def commands(command: Any, path: str = "headwater") -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, f"{path} {name}")


def _help(command: Any) -> str:
    context = command.context_class(command, info_name="x", help_option_names=["-h", "--help"])
    return "\n".join(
        f"{parameter.display_type_rich(context)} {parameter._get_number_range_help_str() or ''}"
        for parameter in command.get_params(context)
    )


def test_help_shows_no_types_and_no_limits_of_databases() -> None:
    for path, command in commands(tidy(typer.main.get_command(app))):
        text = _help(command)
        for word in ("<", "bool", "9223372036854775807"):
            assert word not in text.replace("<=x<=", "").replace("x>=", "").replace("x<=", ""), (path, text)


def test_every_command_stands_in_a_group() -> None:
    root: Any = typer.main.get_command(app)
    assert [name for name, each in root.commands.items() if not each.rich_help_panel] == []
    names = set(root.commands)
    arranged = arrange(root).commands
    assert set(arranged) == names == set(ORDER), "each has its place in ORDER"
    panels = [each.rich_help_panel for each in arranged.values()]
    assert len(list(itertools.groupby(panels))) == len(set(panels)), "groups are told one after the other"
    assert next(name for name, each in arranged.items() if each.rich_help_panel == SOURCES) == "source"


def test_names_of_arguments_are_words_in_capitals() -> None:
    for path, command in commands(tidy(typer.main.get_command(app))):
        for parameter in command.params:
            if parameter.param_type_name == "argument":
                name = parameter.metavar or ""
                assert name[:1].isupper(), (path, parameter.name, name)

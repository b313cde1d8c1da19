"""A config given on the command line as KEY=VALUE."""

from typing import Annotated, Any

import orjson
import typer

from headwater.errors import InputError
from headwater.language import translate as t

Configs = Annotated[
    list[str] | None,
    typer.Option(
        "--config", metavar="KEY=VALUE", help=t("A key of its config, as JSON or text; may be repeated.")
    ),
]


def read_config(given: list[str] | None) -> dict[str, Any]:
    """The values by key: what is JSON as such, anything else as text."""
    found: dict[str, Any] = {}
    for each in given or ():
        key, equals, text = each.partition("=")
        if not equals:
            raise InputError("{given} is not KEY=VALUE", given=each)
        try:
            found[key] = orjson.loads(text)
        except orjson.JSONDecodeError:
            found[key] = text
    return found


def read_pairs(given: list[str] | None) -> dict[str, str]:
    """The texts by key."""
    found: dict[str, str] = {}
    for each in given or ():
        key, equals, text = each.partition("=")
        if not equals:
            raise InputError("{given} is not KEY=VALUE", given=each)
        found[key] = text
    return found

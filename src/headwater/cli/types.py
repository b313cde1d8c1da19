"""`headwater types`: what can be collected from, and what each kind of source takes in its config."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.output import Json, print_json, print_table, say
from headwater.cli.session import Session
from headwater.language import translate as t
from headwater.wording import NOTHING, duration

if TYPE_CHECKING:
    from headwater.collectors.types import SourceType


def types(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="TYPE", help=t("One type, to see the keys of its config."))
    ] = None,
    json: Json = False,
) -> None:
    from headwater.collectors.types import find_type, source_types, type_title

    session: Session = context.obj
    intervals, stored = _read_intervals(session)
    wanted = [find_type(name)] if name else list(source_types())
    if json:
        from headwater.views.types import type_json

        shown = [type_json(each, intervals, stored) for each in wanted]
        print_json(shown[0] if name else shown)
        return
    print_table(
        (t("Type"), t("Title"), t("Alias"), t("Interval"), t("Collected"), t("Config")),
        (
            (
                each.name,
                type_title(each.name),
                each.alias or NOTHING,
                duration(intervals[each.name] * 60),
                _collected(each),
                ", ".join(own_keys(each)) or NOTHING,
            )
            for each in wanted
        ),
        empty="",
    )
    if name:
        say("")
        _print_keys(wanted[0])
    else:
        say(t("`headwater types TYPE` explains the keys of its config."))


def _read_intervals(session: Session) -> tuple[dict[str, float], dict[str, float]]:
    """Minutes between visits by type: those in force, and those that were set in the database, if there is one."""
    from headwater.collectors.intervals import intervals_in_force
    from headwater.collectors.types import intervals_by_type
    from headwater.store.core.settings import interval_settings

    if not session.has_database():
        return intervals_by_type(session.settings.fetch_intervals, {}), {}
    with session.open_store() as store, store.reading() as connection:
        return intervals_in_force(connection, session.settings), interval_settings(connection)


def own_keys(source_type: "SourceType") -> list[str]:
    """The keys of a type's config that not every source has."""
    from headwater.collectors.base import SourceConfig
    from headwater.collectors.types import config_model_of

    keys = config_model_of(source_type.name).model_fields
    return [key for key in keys if key not in SourceConfig.model_fields]


def _collected(source_type: "SourceType") -> str:
    from headwater.collectors.types import collector_of

    collector = collector_of(source_type.name)
    if collector is None:
        return t("skipped")
    return t("with a bridge") if source_type.name.startswith("twitter.") else t("yes")


def _print_keys(source_type: "SourceType") -> None:
    from headwater.collectors.base import is_secret
    from headwater.collectors.types import config_model_of

    model = config_model_of(source_type.name)
    own = own_keys(source_type)
    schema = model.model_json_schema()
    print_table(
        (t("Key"), t("Takes"), t("Default"), t("Meaning")),
        (
            (
                key,
                takes(schema["properties"][key]),
                t("required")
                if model.model_fields[key].is_required()
                else shown_default(schema["properties"][key]),
                t(model.model_fields[key].description or "")
                + (f" ({t('secret')})" if is_secret(key, model) else ""),
            )
            for key in [*own, *(key for key in model.model_fields if key not in own)]
        ),
        empty="",
    )


def takes(schema: dict[str, Any]) -> str:
    """What a key takes, in a word or two, from its JSON Schema."""
    kinds = [kind for kind in schema.get("anyOf", [schema]) if kind.get("type") != "null"]
    words = {
        "string": t("text"),
        "integer": t("a whole number"),
        "number": t("a number"),
        "boolean": t("true or false"),
        "object": t("a JSON object"),
        "array": t("a JSON list"),
    }
    shown = []
    for kind in kinds:
        if "enum" in kind:
            shown.append(" | ".join(map(str, kind["enum"])))
        else:
            word = words.get(kind.get("type", ""), kind.get("type", NOTHING))
            low, high = kind.get("minimum"), kind.get("maximum")
            shown.append(
                word
                if low is None
                else f"{word}, {low:g}–{high:g}"
                if high is not None
                else f"{word} ≥ {low:g}"
            )
    return " | ".join(shown)


def shown_default(schema: dict[str, Any]) -> Any:
    default = schema.get("default")
    if default is None or default == {}:
        return NOTHING
    return str(default).lower() if isinstance(default, bool) else default

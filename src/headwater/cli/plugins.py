"""`headwater plugins`: what other packages add, and what is wrong with those that are disabled."""

from headwater.cli.output import Json, print_json, print_table
from headwater.language import translate as t


def plugins(json: Json = False) -> None:
    rows = plugin_rows()
    if json:
        print_json(rows)
        return
    kinds = {"collector": t("source type"), "step": t("pipeline step")}
    print_table(
        (t("Name"), t("Kind"), t("Package"), t("State")),
        ((row["name"], kinds[str(row["kind"])], row["package"], row["problem"] or t("ok")) for row in rows),
        empty=t("There are no plugins. docs/how-to/write-a-plugin.md tells how to write one."),
    )


def plugin_rows() -> list[dict[str, str | None]]:
    from headwater.collectors.types import disabled_types, source_types
    from headwater.pipeline.registry import step_plugins

    steps = step_plugins()
    found = [
        *(("collector", kind.name, kind.package, None) for kind in source_types() if kind.package),
        *(("collector", each.name, each.package, each.problem.render()) for each in disabled_types()),
        *(("step", plugin.name, plugin.package, None) for plugin in steps.usable.values()),
        *(("step", each.name, each.package, each.problem.render()) for each in steps.disabled),
    ]
    return [dict(zip(("kind", "name", "package", "problem"), each, strict=True)) for each in found]

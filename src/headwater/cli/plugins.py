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
    from headwater.pipeline.plugins import list_plugins

    return [
        {
            "kind": plugin.kind,
            "name": plugin.name,
            "package": plugin.package,
            "problem": plugin.problem.render() if plugin.problem else None,
        }
        for plugin in list_plugins()
    ]

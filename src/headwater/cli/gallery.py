"""`headwater gallery …`: ready arrangements of pipelines, outlets, digests and targets."""

import time
from typing import Annotated

import typer

from headwater.cli.configs import read_pairs
from headwater.cli.output import Json, print_json, print_table, say
from headwater.cli.session import Session
from headwater.language import translate as t

app = typer.Typer(
    no_args_is_help=True, help=t("Start from an arrangement that works once you fill in a field.")
)


@app.command("list", help=t("List what the gallery has, with the fields to fill in."))
def list_(context: typer.Context, json: Json = False) -> None:
    from headwater.publish.gallery import GALLERY
    from headwater.views.gallery import entry_json

    session: Session = context.obj
    session.settings  # noqa: B018 - from here on, messages are in the user's language
    if json:
        print_json([entry_json(entry) for entry in GALLERY])
        return
    print_table(
        (t("Key"), t("Name"), t("Description"), t("Fields")),
        (
            (
                entry.key,
                t(entry.name),
                t(entry.description),
                ", ".join(field.key if field.default is None else f"[{field.key}]" for field in entry.fields),
            )
            for entry in GALLERY
        ),
        empty="",
    )


@app.command(help=t("Make what an entry of the gallery needs: pipelines, outlets, digests, targets."))
def use(
    context: typer.Context,
    key: Annotated[str, typer.Argument(metavar="KEY", help=t("What to use, as `gallery list` shows it."))],
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help=t("A field of the entry; may be repeated.")),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help=t("The name of what is made; else the entry's own."))
    ] = None,
    json: Json = False,
) -> None:
    from headwater.publish.gallery import use_entry
    from headwater.views.gallery import made_json

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        made = use_entry(connection, key, read_pairs(values), time.time(), name)
    if json:
        print_json(made_json(made))
        return
    for kind, names in made_json(made).items():
        for each in names:
            say(t("made {kind}: {name}").format(kind=t(kind), name=each))

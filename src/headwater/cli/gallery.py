"""`headwater gallery …`: ready arrangements of pipelines, outlets, digests and targets."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.configs import read_pairs
from headwater.cli.output import Json, print_json, print_table, say, warn
from headwater.cli.session import Session
from headwater.errors import Text
from headwater.language import translate as t

if TYPE_CHECKING:
    from headwater.publish.gallery import Made

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
    from headwater.publish.missing import missing_services
    from headwater.views.gallery import made_json

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        made = use_entry(connection, key, read_pairs(values), time.time(), name)
    if json:
        print_json(made_json(made))
        return
    for line in _told(made):
        say(line)
    warn(missing_services(session.settings, made))


def _told(made: "Made") -> Iterator[str]:
    """What was made, with where to find it."""
    yield from (t("made the source {name}").format(name=name) for name in made.sources)
    yield from (t("made the pipeline {name}").format(name=name) for name in made.templates)
    if made.run_count:
        yield Text(
            "it runs for the newest {count:item|items} that {count:is|are} there: {count}",
            count=made.run_count,
        ).render()
    for name in made.outlets:
        yield t("made the outlet {name}: /outlets/{name}.xml").format(name=name)
    for name in made.digests:
        yield t("made the digest {name}; see it with: headwater digest preview {name}").format(name=name)
    for name in made.targets:
        yield t("made the target {name}; try it with: headwater target test {name}").format(name=name)

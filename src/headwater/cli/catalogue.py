"""`headwater catalogue …`: packs of well-known feeds to start with."""

from collections import Counter
from typing import Annotated

import typer

from headwater.cli.output import Json, print_json, print_table, say
from headwater.cli.session import Session
from headwater.language import translate as t

app = typer.Typer(no_args_is_help=True, help=t("Start with packs of well-known feeds."))


@app.command("list", help=t("List the packs of the catalogue, or the feeds of one; makes no request."))
def list_(
    context: typer.Context,
    pack: Annotated[str | None, typer.Argument(metavar="PACK", help=t("A pack's key."))] = None,
    json: Json = False,
) -> None:
    from headwater.sources.catalogue import find_pack, read_catalogue
    from headwater.views.catalogue import pack_json

    session: Session = context.obj
    session.settings  # noqa: B018 - from here on, messages are in the user's language
    packs = read_catalogue() if pack is None else (find_pack(pack),)
    if json:
        print_json([pack_json(each) for each in packs])
        return
    if pack is not None:
        feeds = ((feed.title, feed.url) for feed in packs[0].feeds)
        print_table((t("Title"), t("Address")), feeds, empty="")
        return
    print_table(
        (t("Key"), t("Title"), t("Language"), t("Feeds")),
        ((each.key, each.title_in(), each.language, len(each.feeds)) for each in packs),
        empty="",
    )


@app.command(help=t("Add the feeds of a pack in a folder; they are first in line for the collector."))
def add(
    context: typer.Context,
    pack: Annotated[str, typer.Argument(metavar="PACK", help=t("A pack's key."))],
    folder: Annotated[
        str | None, typer.Option(help=t("A folder for its feeds; else one with the pack's title."))
    ] = None,
    json: Json = False,
) -> None:
    from headwater.sources.catalogue import find_pack, pack_as_list
    from headwater.sources.lists import import_export
    from headwater.store.core.clock import measured_clock
    from headwater.views.feeds import import_report_json

    session: Session = context.obj
    session.settings  # noqa: B018 - from here on, messages are in the user's language
    found = find_pack(pack)
    with session.open_store() as store:
        export = pack_as_list(found, folder or found.title_in())
        report = import_export(store, export, measured_clock(store)())
    if json:
        print_json(import_report_json(report))
        return
    counts = Counter(entry.outcome for entry in report)
    say(
        t("{added} added, {known} known already, {rejected} rejected").format(
            added=counts["added"], known=counts["known"], rejected=counts["rejected"]
        )
    )

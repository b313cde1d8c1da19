"""`headwater scrape`: a source from a page that has no feed."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.output import Json, iso, print_json, print_table, say
from headwater.cli.session import Session
from headwater.errors import InputError
from headwater.language import translate as t

if TYPE_CHECKING:
    from headwater.formats.pages.propose import Proposal
    from headwater.model import Source
    from headwater.sources.scraping import PageReport

SHOWN_ITEMS = 10


def scrape(
    context: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help=t("The address of a page."))],
    choose: Annotated[
        int, typer.Option(min=1, max=9, help=t("Which of the proposals to take; 1 is the most likely one."))
    ] = 1,
    name: Annotated[str | None, typer.Option(help=t("A name; else the source's own title."))] = None,
    folder: Annotated[str | None, typer.Option(help=t("A folder to keep it in."))] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help=t("Save the source without asking."))] = False,
    json: Json = False,
) -> None:
    from headwater.cli.source import whole_source_as_json
    from headwater.collect.context import read_visit_context
    from headwater.fetch.client import make_fetcher
    from headwater.sources.adding import add_and_visit, read_new_source
    from headwater.sources.addresses import read_url
    from headwater.sources.scraping import config_of, look_at_page

    session: Session = context.obj
    address = read_url(url)

    shown: dict[str, Any] | None = None

    async def look_and_save() -> "tuple[PageReport, Source | None]":
        nonlocal shown
        async with make_fetcher(session.settings) as fetcher:
            report = await look_at_page(address, fetcher)
            if not json:
                _show(report, choose)
            if not report.proposals or not (yes or (not json and _confirm())):
                return report, None
            wanted = read_new_source(address, "web.scraper", config_of(_chosen(report, choose)), name, folder)
            with session.open_store() as store:
                visit_context = await read_visit_context(store, session.settings, fetcher)
                added = await add_and_visit(wanted, visit_context)
                with store.reading() as connection:
                    shown = whole_source_as_json(session, connection, added)
                return report, added

    report, added = asyncio.run(look_and_save())
    if json:
        print_json(
            {
                "url": report.url,
                "feeds": report.feeds,
                "proposals": [_as_json(proposal) for proposal in report.proposals],
                "source": shown,
            }
        )
    elif added is not None:
        say(t("added source {id}: {name}").format(id=added.id, name=added.name))
    elif report.proposals:
        say(t("Nothing is saved."))


def _chosen(report: "PageReport", choose: int) -> "Proposal":
    if choose > len(report.proposals):
        raise InputError(
            "there is no proposal {number}; the page gives {count}",
            number=choose,
            count=len(report.proposals),
        )
    return report.proposals[choose - 1]


def _confirm() -> bool:
    try:
        return typer.confirm(t("Save this as a source?"))
    except typer.Abort:  # no one is there to answer
        return False


def _show(report: "PageReport", choose: int) -> None:
    from headwater.sources.scraping import config_of

    for feed in report.feeds:
        say(
            t("It is a feed itself; add it as it is: headwater source add {url}").format(url=feed.url)
            if feed.how is None
            else t("It has a feed, which is better than scraping: headwater source add {url}").format(
                url=feed.url
            )
        )
    if not report.proposals:
        return
    chosen = _chosen(report, choose)
    for key, selector in config_of(chosen).items():
        say(f"{key}: {selector}")
    items = chosen.page.items
    print_table(
        (t("Published"), t("Title"), t("Address")),
        ((iso(item.published_at), item.title, item.url) for item in items[:SHOWN_ITEMS]),
        empty="",
    )
    say(t("{count} {count:item|items} in all").format(count=len(items)))
    for number, other in enumerate(report.proposals, 1):
        if number != choose:
            say(
                t("--choose {number}: {count} {count:item|items} by {selector}, such as {title}").format(
                    number=number,
                    count=len(other.page.items),
                    selector=other.selectors.item,
                    title=other.page.items[0].title,
                )
            )


def _as_json(proposal: "Proposal") -> dict[str, Any]:
    from headwater.sources.scraping import config_of
    from headwater.views.items import collected_item_json

    return {
        "config": config_of(proposal),
        "items": [collected_item_json(item) for item in proposal.page.items],
    }

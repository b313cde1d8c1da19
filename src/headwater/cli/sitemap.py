"""`headwater sitemap-to-feed` and `headwater sitemap …`: sitemaps that become feeds, and their state."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from headwater.cli.output import Json, print_json, progress_bar, say
from headwater.cli.session import Session
from headwater.errors import InputError
from headwater.language import translate as t
from headwater.model import url_key

if TYPE_CHECKING:
    from headwater.config import Settings
    from headwater.sitemaps.run import Order, Outcome
    from headwater.sitemaps.state import IncrementalStateManager

app = typer.Typer(no_args_is_help=True, help=t("The state of sitemaps that become feeds."))

State = Annotated[
    str | None,
    typer.Option(
        "--state",
        metavar="DIR|DATABASE",
        help=t(
            "Where the state is, instead of the data directory: a directory, the address of a database"
            " (postgresql://…), or the word database for Headwater's own."
        ),
    ),
]


def sitemap_to_feed(
    context: typer.Context,
    url: Annotated[str, typer.Argument(help=t("The address of a sitemap, or of a site."))],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help=t("The feed; its ending says the format."))
    ],
    format: Annotated[
        str | None, typer.Option("--format", help=t("rss, atom or json, whatever the ending is."))
    ] = None,
    mode: Annotated[
        Literal["new", "new+modified", "smart"],
        typer.Option(help=t("Which pages: new ones, modified ones too, or modified ones by their text.")),
    ] = "new+modified",
    include: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help=t("Only addresses that contain this; * stands for anything.")),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help=t("No addresses that contain this; * stands for anything.")),
    ] = None,
    baseline: Annotated[
        int, typer.Option(min=0, max=1000, help=t("How many of the newest pages the first run shows."))
    ] = 10,
    max_items: Annotated[int, typer.Option(min=1, max=1000, help=t("How many pages the feed shows."))] = 50,
    titles: Annotated[
        bool,
        typer.Option("--titles/--no-titles", help=t("Read titles and dates from the pages that changed.")),
    ] = True,
    full: Annotated[
        bool, typer.Option("--full", help=t("Show the newest pages, whatever was shown before."))
    ] = False,
    title: Annotated[str | None, typer.Option(help=t("The title of the feed."))] = None,
    self_url: Annotated[
        str | None, typer.Option("--self-url", help=t("Where the feed will be found by its readers."))
    ] = None,
    state: State = None,
    json: Json = False,
) -> None:
    from headwater.collectors.sitemap_survey import Wishes
    from headwater.sitemaps.feed import Channel, read_format
    from headwater.sitemaps.run import Order
    from headwater.sources.addresses import read_url

    session: Session = context.obj
    settings = session.settings
    session.log_to_terminal()
    url = read_url(url)
    if output.is_dir() or not output.name:
        raise InputError("cannot write {path}: {problem}", path=output, problem=t("it is a directory"))
    order = Order(
        url=url,
        # Each file is its own feed, which has shown what it has shown.
        site_name=f"{url_key(url)} > {output.resolve()}",
        wishes=Wishes(tuple(include or ()), tuple(exclude or ()), mode, baseline),
        channel=Channel(title=title, self_link=self_url),
        max_items=max_items,
        fetch_titles=titles,
        incremental=not full,
    )
    with _open_state(session, state) as manager, progress_bar(t("Reading pages"), quiet=json) as advance:
        outcome = asyncio.run(
            _make(
                order,
                manager,
                settings,
                output,
                read_format(output, format),
                lambda done, total: advance(done, total, ""),
            )
        )
    _tell(outcome, output, json)


@contextmanager
def _open_state(session: Session, state: str | None) -> Iterator["IncrementalStateManager"]:
    from headwater.sitemaps.state import IncrementalStateManager

    if state == "database":
        with session.open_store() as store:
            yield IncrementalStateManager(store=store)
    else:
        with IncrementalStateManager(state or session.settings.data_dir / "rss_states") as manager:
            yield manager


async def _make(
    order: "Order",
    manager: "IncrementalStateManager",
    settings: "Settings",
    output: Path,
    format: str,
    progress: Any,
) -> "Outcome":
    from headwater.fetch.client import make_fetcher
    from headwater.sitemaps.run import make_feed

    async with make_fetcher(settings) as fetcher:
        return await make_feed(order, manager, fetcher, output=output, format=format, progress=progress)


def _tell(outcome: "Outcome", output: Path, json: bool) -> None:
    if json:
        print_json(
            {
                "output": str(output),
                "how": outcome.how,
                "new_urls": outcome.new_urls,
                "modified_urls": outcome.modified_urls,
                "total_urls": outcome.total_urls,
                "requests": outcome.requests,
                "written": outcome.written,
                "failures": outcome.failures,
            }
        )
        return
    say(
        t(
            "{output}: {new} new, {modified} modified of {total} {total:address|addresses},"
            " {requests} {requests:request|requests}"
        ).format(
            output=output,
            new=len(outcome.new_urls),
            modified=len(outcome.modified_urls),
            total=outcome.total_urls,
            requests=outcome.requests,
        )
    )


@app.command("restore", help=t("Bring back the state from a backup."))
def restore(
    context: typer.Context,
    backup: Annotated[
        str | None,
        typer.Argument(metavar="DATE|FILE", help=t("A day (YYYY-MM-DD) or a file; else the newest backup.")),
    ] = None,
    state: State = None,
    json: Json = False,
) -> None:
    from headwater.sitemaps.backup import find_backup
    from headwater.sitemaps.backup import restore as restore_state

    session: Session = context.obj
    with _open_state(session, state) as manager:
        if manager.backups is None:
            raise InputError("a state in a database has no separate backups; restore the database instead")
        path = find_backup(manager, backup)
        count = restore_state(manager, path)
    if json:
        print_json({"backup": str(path), "addresses": count})
    else:
        say(
            t("restored the state from {path}: {count} {count:address|addresses}").format(
                path=path, count=count
            )
        )

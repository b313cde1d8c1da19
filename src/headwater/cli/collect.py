"""`headwater collect`: visits, once or for ever."""

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.output import Json, ago, print_json, say
from headwater.cli.session import Session
from headwater.errors import InputError
from headwater.language import translate as t

if TYPE_CHECKING:
    from headwater.collect.engine import Tally
    from headwater.store.database import Store
    from headwater.store.queue import Settlement


def collect(
    context: typer.Context,
    loop: Annotated[
        bool, typer.Option("--loop", help=t("Go on, visiting sources as they come due."))
    ] = False,
    source: Annotated[
        list[int] | None,
        typer.Option(metavar="ID", help=t("Visit this source now, whatever its plan says; may be repeated.")),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help=t("Visit every source now, due or not."))] = False,
    json: Json = False,
) -> None:
    from headwater.collect.engine import Engine
    from headwater.store.queue import count_due
    from headwater.store.sources import get_source, list_sources

    session: Session = context.obj
    if loop + bool(source) + all_ > 1:
        raise InputError("--loop, --source and --all each say what to visit; give one of them")
    with session.open_store() as store:
        with store.reading() as connection:
            ids = [get_source(connection, source_id).id for source_id in source or []]
            if all_:
                ids = [each.id for each in list_sources(connection) if each.schedule_enabled]
            expected = len(ids) or count_due(connection, time.time())

        async def work() -> tuple[bool, "Tally"]:
            with _progress(expected, quiet=json or loop) as on_settled:
                async with Engine(store, session.settings, on_settled=on_settled) as engine:
                    with stopping_on_signals(engine.stop):
                        if loop:
                            finished = await engine.run()
                        elif source or all_:
                            finished = await engine.collect_sources(ids)
                        else:
                            finished = await engine.collect_due()
                    return finished, engine.tally

        finished, tally = asyncio.run(work())
        if json:
            print_json(_tally_as_json(tally))
        else:
            _tell(store, tally)
    if not finished or (source and tally.failed):
        raise typer.Exit(1)


@contextlib.contextmanager
def _progress(expected: int, *, quiet: bool) -> Iterator[Callable[["Settlement"], None]]:
    """A progress bar on the terminal, if there is one and something to show."""
    if quiet or not expected or not sys.stderr.isatty():
        yield lambda settlement: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(t("{task.fields[items]} new items")),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(t("Visiting"), total=expected, items=0)

        def on_settled(settlement: "Settlement") -> None:
            items = progress.tasks[0].fields["items"] + settlement.visit.items_new
            progress.update(task, advance=1, items=items)

        yield on_settled


def _tell(store: "Store", tally: "Tally") -> None:
    for source, message in tally.failures:
        say(f"{source.id} {source.name}: {message}", error=True)
    if tally.visits:
        say(
            t(
                "{visits} visits: {new} new items, {updated} updated, {unchanged} unchanged, {failed} failed"
            ).format(
                visits=tally.visits,
                new=tally.items_new,
                updated=tally.items_updated,
                unchanged=tally.unchanged,
                failed=tally.failed,
            )
        )
        return
    from headwater.store.queue import next_due_at

    with store.reading() as connection:
        first = next_due_at(connection)
    if first is None:
        say(t("There is nothing to visit. Add a source with: headwater source add URL"))
    else:
        say(
            t(
                "Nothing is due; the next visit is {when}. `headwater collect --all` visits everything now."
            ).format(when=ago(first))
        )


def _tally_as_json(tally: "Tally") -> dict[str, object]:
    return {
        "visits": tally.visits,
        "items_new": tally.items_new,
        "items_updated": tally.items_updated,
        "unchanged": tally.unchanged,
        "skipped": tally.skipped,
        "failed": tally.failed,
        "failures": [
            {"source_id": source.id, "name": source.name, "error": message}
            for source, message in tally.failures
        ],
    }


@contextlib.contextmanager
def stopping_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """SIGTERM and SIGINT stop politely; a second one stops at once."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    asked = False

    def on_signal() -> None:
        nonlocal asked
        if asked and task is not None:
            task.cancel()
        asked = True
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

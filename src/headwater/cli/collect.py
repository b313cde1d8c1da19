"""`headwater collect`: visits, once or for ever."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.output import BIGGEST, Json, from_now, print_json, progress_bar, say
from headwater.cli.session import Session
from headwater.errors import InputError
from headwater.language import translate as t

if TYPE_CHECKING:
    from headwater.collect.engine import Tally
    from headwater.store.database import Store


def collect(
    context: typer.Context,
    loop: Annotated[
        bool, typer.Option("--loop", help=t("Go on, visiting sources as they come due."))
    ] = False,
    source: Annotated[
        list[int] | None,
        typer.Option(
            metavar="ID",
            max=BIGGEST,
            help=t("Visit this source now, whatever its plan says; may be repeated."),
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help=t("Visit every source now, due or not."))] = False,
    json: Json = False,
) -> None:
    from headwater.collect.engine import Engine
    from headwater.collect.surroundings import make_fetcher
    from headwater.pipeline.beside import WorkerBeside
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
            with progress_bar(t("Visiting"), quiet=json or loop or not expected) as advance:

                def show(tally: "Tally") -> None:
                    note = t("{count} new items").format(count=tally.items_new)
                    advance(tally.visits, max(expected, tally.visits), note)  # more may come due meanwhile

                async with Engine(
                    store, session.settings, on_settled=lambda settlement: show(engine.tally)
                ) as engine:
                    beside = WorkerBeside(store, session.settings, make_fetcher, wanted=loop)

                    def stop() -> None:
                        engine.stop()
                        beside.stop()

                    with stopping_on_signals(stop):
                        async with beside:
                            if loop:
                                finished = await engine.run()
                            elif source or all_:
                                finished = await engine.collect_sources(ids)
                            else:
                                finished = await engine.collect_due()
                    return finished and beside.finished, engine.tally

        finished, tally = asyncio.run(work())
        if json:
            print_json(_tally_as_json(tally))
        else:
            _tell(store, tally)
    if not finished or (source and tally.failed):
        raise typer.Exit(1)


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
            ).format(when=from_now(first))
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
    """SIGTERM, SIGINT and SIGHUP stop politely; a second one stops at once."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    asked = False

    def on_signal() -> None:
        nonlocal asked
        if asked and task is not None:
            task.cancel()
        asked = True
        stop()

    # A terminal that goes away is no reason to stop for whoever started us with nohup.
    hangup = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
    numbers = (signal.SIGTERM, signal.SIGINT, *hangup)
    for number in numbers:
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)

"""`headwater collect`: visits, once or for ever."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.choosing import find_ids
from headwater.cli.live import showing
from headwater.cli.loop import run
from headwater.cli.output import (
    Json,
    from_now,
    iso,
    print_json,
    print_json_list,
    print_table,
    progress_bar,
    say,
)
from headwater.cli.session import Session
from headwater.errors import InputError
from headwater.language import translate as t
from headwater.wording import ago

if TYPE_CHECKING:
    from headwater.cli.processes import Done
    from headwater.collect.engine import Tally
    from headwater.store.collecting.queue import Due
    from headwater.store.core.database import Store

LISTED_DUE = 100


def collect(
    context: typer.Context,
    loop: Annotated[
        bool, typer.Option("--loop", help=t("Keep running and visit sources as they become due."))
    ] = False,
    source: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE",
            help=t(
                "Visit this source (number, name or address) now, whatever its plan says; may be repeated."
            ),
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help=t("Visit every source now, due or not."))] = False,
    processes: Annotated[
        int | None, typer.Option(min=1, max=64, help=t("How many processes collect, instead of the setting."))
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help=t("Only show what is due, and why; make no requests."))
    ] = False,
    json: Json = False,
) -> None:
    session: Session = context.obj
    if loop + bool(source) + all_ > 1:
        raise InputError("--loop, --source and --all each say what to visit; give one of them")
    if processes is not None:
        if not loop:
            raise InputError("--processes is for collecting for ever; give --loop, too")
        session.assignments.append(f"processes={processes}")
    if loop and session.settings.processes > 1:
        _collect_in_processes(session, json)
        return
    if dry_run:
        if loop or source or all_:
            raise InputError("--dry-run says what is due; leave out --loop, --source and --all")
        _say_what_is_due(session, json)
        return
    from headwater.collect.engine import Engine
    from headwater.fetch.client import make_fetcher
    from headwater.pipeline.embedded import EmbeddedWorker
    from headwater.publish.publisher import Publisher
    from headwater.store.collecting.counting import count_enabled_sources
    from headwater.store.collecting.queue import count_due
    from headwater.store.core.clock import database_time

    with session.open_store(waiting=loop) as store:
        ids: list[int] = []
        expected = 0
        if not loop:
            with store.reading() as connection:
                ids = find_ids(connection, source or [])
                if all_:
                    expected = count_enabled_sources(connection)
                else:
                    expected = len(ids) or count_due(connection, database_time(connection))

        async def work() -> tuple[bool, "Tally"]:
            with progress_bar(t("Visiting"), quiet=json or loop or not expected) as advance:

                def show(tally: "Tally") -> None:
                    note = t("{count} new {count:item|items}").format(count=tally.items_new)
                    advance(tally.visits, max(expected, tally.visits), note)  # more may come due meanwhile

                async with Engine(
                    store, session.settings, on_settled=lambda settlement: show(engine.tally)
                ) as engine:
                    embedded = EmbeddedWorker(store, session.settings, make_fetcher, wanted=loop)

                    publisher = Publisher(store, session.settings, make_fetcher)

                    def stop() -> None:
                        engine.stop()
                        embedded.stop()
                        publisher.stop()

                    with stopping_on_signals(stop):
                        async with embedded:
                            if loop:
                                async with publisher, showing(engine, store, wanted=not json):
                                    finished = await engine.run()
                            elif all_:
                                finished = await engine.collect_all()
                            elif source:
                                finished = await engine.collect_sources(ids)
                            else:
                                finished = await engine.collect_due()
                                await engine.keep_up()  # with collecting from cron no other process may do it
                    return finished and embedded.finished, engine.tally

        finished, tally = run(work())
        if json:
            print_json(_tally_as_json(tally))
        else:
            _tell(store, tally)
    if not finished or (source and tally.failed):
        raise typer.Exit(1)


def _collect_in_processes(session: Session, json: bool) -> None:
    """Start processes that collect, and watch them until a signal."""
    from headwater.cli.processes import CollectorProcesses

    async def work() -> tuple[bool, "Done"]:
        collecting = CollectorProcesses(session.settings, session.settings.processes)
        with stopping_on_signals(collecting.stop):
            return await collecting.run(), collecting.done

    with session.open_store(waiting=True):
        pass  # its schema is there before several look for it
    finished, done = run(work())
    if json:
        print_json(done._asdict())
    elif done.visits:
        _say_done(done)
    if not finished:
        raise typer.Exit(1)


def _say_done(done: "Tally | Done") -> None:
    say(
        t(
            "{visits} {visits:visit|visits}: {new} new {new:item|items}, {updated} updated,"
            " {unchanged} unchanged, {failed} failed"
        ).format(
            visits=done.visits,
            new=done.items_new,
            updated=done.items_updated,
            unchanged=done.unchanged,
            failed=done.failed,
        )
    )


def _tell(store: "Store", tally: "Tally") -> None:
    for source, message in tally.failures:
        say(f"{source.id} {source.name}: {message}", error=True)
    if tally.visits:
        _say_done(tally)
        return
    from headwater.store.collecting.queue import next_due_at
    from headwater.store.core.clock import database_time

    with store.reading() as connection:
        first = next_due_at(connection, database_time(connection))
    _say_nothing_is_due(first)


def _say_nothing_is_due(first: float | None) -> None:
    if first is None:
        say(t("There is nothing to visit. Add a source with: headwater source add URL"))
    else:
        say(
            t(
                "Nothing is due; the next visit is {when}. `headwater collect --all` visits everything now."
            ).format(when=from_now(first))
        )


def _say_what_is_due(session: Session, json: bool) -> None:
    from headwater.collectors.types import type_title
    from headwater.store.collecting.queue import count_due, iterate_due, next_due_at
    from headwater.store.collecting.sources import due_since
    from headwater.store.core.clock import database_time

    with session.open_store() as store, store.reading() as connection:
        now = database_time(connection)
        if json:
            print_json_list(_due_as_json(due, now) for due in iterate_due(connection, now))
            return
        total = count_due(connection, now)
        if not total:
            _say_nothing_is_due(next_due_at(connection, now))
            return
        print_table(
            ("ID", t("Name"), t("Type"), t("Due since"), t("Why")),
            (
                (
                    due.source.id,
                    due.source.name,
                    type_title(due.source.type),
                    ago(due_since(due.place), now),
                    _why_due(due, now),
                )
                for due in iterate_due(connection, now, LISTED_DUE)
            ),
            empty="",
        )
    if total > LISTED_DUE:
        say(t("… and {count} more").format(count=total - LISTED_DUE))


def _due_as_json(due: "Due", now: float) -> dict[str, object]:
    from headwater.store.collecting.sources import due_since

    return {
        "source_id": due.source.id,
        "name": due.source.name,
        "type": due.source.type,
        "url": due.source.url,
        "due_since": iso(due_since(due.place)),
        "why": _why_due(due, now),
    }


def _why_due(due: "Due", now: float) -> str:
    """Why a source is due, in one sentence."""
    from headwater.schedule.explain import explain_next

    source = due.source
    if source.lease_until is not None:
        return t("a collector claimed it and did not finish in time")
    if due.requested_at is not None:
        return t("a refresh was asked for {when}").format(when=ago(due.requested_at, now))
    return explain_next(source)


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

    # Started with nohup, we go on when the terminal goes away.
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

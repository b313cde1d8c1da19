"""`headwater collect`: visits, once or for ever."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.live import showing
from headwater.cli.loop import run
from headwater.cli.output import BIGGEST, Json, from_now, iso, print_json, print_table, progress_bar, say
from headwater.cli.session import Session
from headwater.errors import InputError
from headwater.language import translate as t
from headwater.wording import ago

if TYPE_CHECKING:
    from headwater.collect.engine import Tally
    from headwater.store.database import Store
    from headwater.store.queue import Due

LISTED_DUE = 100


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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help=t("Only say what is due, and why; make no request."))
    ] = False,
    json: Json = False,
) -> None:
    session: Session = context.obj
    if loop + bool(source) + all_ > 1:
        raise InputError("--loop, --source and --all each say what to visit; give one of them")
    if dry_run:
        if loop or source or all_:
            raise InputError("--dry-run says what is due; leave out --loop, --source and --all")
        _say_what_is_due(session, json)
        return
    from headwater.collect.engine import Engine
    from headwater.collect.surroundings import make_fetcher
    from headwater.pipeline.beside import WorkerBeside
    from headwater.store.clock import database_time
    from headwater.store.queue import count_due
    from headwater.store.sources import get_source, list_sources

    with session.open_store(waiting=loop) as store:
        ids: list[int] = []
        expected = 0
        if not loop:
            with store.reading() as connection:
                ids = [get_source(connection, source_id).id for source_id in source or []]
                if all_:
                    ids = [each.id for each in list_sources(connection) if each.schedule_enabled]
                expected = len(ids) or count_due(connection, database_time(connection))

        async def work() -> tuple[bool, "Tally"]:
            with progress_bar(t("Visiting"), quiet=json or loop or not expected) as advance:

                def show(tally: "Tally") -> None:
                    note = t("{count} new {count:item|items}").format(count=tally.items_new)
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
                                async with showing(engine, store, wanted=not json):
                                    finished = await engine.run()
                            elif source or all_:
                                finished = await engine.collect_sources(ids)
                            else:
                                finished = await engine.collect_due()
                                await engine.keep_up()  # nobody else may do it where collecting is cron's
                    return finished and beside.finished, engine.tally

        finished, tally = run(work())
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
                "{visits} {visits:visit|visits}: {new} new {new:item|items}, {updated} updated,"
                " {unchanged} unchanged, {failed} failed"
            ).format(
                visits=tally.visits,
                new=tally.items_new,
                updated=tally.items_updated,
                unchanged=tally.unchanged,
                failed=tally.failed,
            )
        )
        return
    from headwater.store.clock import database_time
    from headwater.store.queue import next_due_at

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
    from headwater.store.clock import database_time
    from headwater.store.queue import count_due, list_due, next_due_at
    from headwater.store.sources import due_since

    with session.open_store() as store, store.reading() as connection:
        now = database_time(connection)
        total = count_due(connection, now)
        found = list_due(connection, now, None if json else LISTED_DUE)
        first = next_due_at(connection, now)
    if json:
        print_json(
            [
                {
                    "source_id": due.source.id,
                    "name": due.source.name,
                    "type": due.source.type,
                    "url": due.source.url,
                    "due_since": iso(due_since(due.place)),
                    "why": _why_due(due, now),
                }
                for due in found
            ]
        )
        return
    if not found:
        _say_nothing_is_due(first)
        return
    print_table(
        ("ID", t("Name"), t("Type"), t("Due since"), t("Why")),
        (
            (
                due.source.id,
                due.source.name,
                due.source.type,
                ago(due_since(due.place), now),
                _why_due(due, now),
            )
            for due in found
        ),
        empty="",
    )
    if total > len(found):
        say(t("… and {count} more").format(count=total - len(found)))


def _why_due(due: "Due", now: float) -> str:
    """Why a source is due, in one sentence."""
    from headwater.model import Plan
    from headwater.schedule.explain import explain_plan

    source = due.source
    if source.lease_until is not None:
        return t("a collector took it and did not come back in time")
    if due.requested_at is not None:
        return t("a refresh was asked for {when}").format(when=ago(due.requested_at, now))
    if source.next_fetch_at is None:
        return t("it has not been visited yet and is first in line")
    return explain_plan(Plan(source.next_fetch_at, source.plan_reason), state=source.policy_state)


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

"""`headwater status`: how the collection goes, once or again and again. `headwater refresh`: sources to the head
of the line."""

import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.output import BIGGEST, Json, iso, print_json, print_json_line, printable, say
from headwater.cli.session import Session
from headwater.errors import InputError
from headwater.language import translate as t
from headwater.wording import NOTHING, ago, duration

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headwater.store.database import Store
    from headwater.store.hours import VisitSums
    from headwater.store.overview import Status

WATCH_SECONDS = 2.0


def status(
    context: typer.Context,
    watch: Annotated[
        bool, typer.Option("--watch", help=t("Show it again every two seconds, until interrupted."))
    ] = False,
    json: Json = False,
) -> None:
    session: Session = context.obj
    with session.open_store() as store:
        if not watch:
            seen = _read(store)
            print_json(status_as_json(seen)) if json else _print(seen)
            return
        try:
            if json or not sys.stdout.isatty():
                while True:
                    seen = _read(store)
                    print_json_line(status_as_json(seen)) if json else _print(seen)
                    sys.stdout.flush()
                    time.sleep(WATCH_SECONDS)
            _watch(store)
        except KeyboardInterrupt:
            return  # which is how watching ends


def _read(store: "Store") -> "Status":
    from headwater.store.clock import database_time
    from headwater.store.overview import read_status

    with store.reading() as connection:
        return read_status(connection, database_time(connection))


def _watch(store: "Store") -> None:
    from rich.live import Live

    with Live(screen=True, auto_refresh=False) as live:
        while True:
            live.update(_table(_read(store)), refresh=True)
            time.sleep(WATCH_SECONDS)


def _print(seen: "Status") -> None:
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else 200).print(_table(seen))


def _table(seen: "Status") -> "RenderableType":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in _lines(seen):
        table.add_row(Text(name, style="bold"), Text(printable(value)))
    return table


def _lines(seen: "Status") -> Iterator[tuple[str, str]]:
    """The status in words: pairs of a name and what there is to say."""
    for outage in seen.outages:
        yield (
            t("Our network is down"),
            t("on {machine}, since {time}; no source is blamed for it").format(
                machine=outage.machine, time=duration(seen.at - outage.since_at)
            ),
        )
    counts = seen.sources
    parts = [t("{count} active").format(count=counts.active)]
    for count, words in (
        (counts.paused_by_error, t("{count} paused by errors")),
        (counts.needs_attention, t("{count} with refused credentials")),
        (counts.retired, t("{count} retired")),
        (counts.switched_off, t("{count} switched off")),
    ):
        if count:
            parts.append(words.format(count=count))
    yield t("Sources"), f"{counts.total} ({', '.join(parts)})"
    yield t("Due now"), str(seen.due)
    yield t("Longest wait"), duration(seen.lag_seconds) if seen.due else NOTHING
    yield t("In flight"), str(seen.in_flight)
    yield t("Next visit"), ago(seen.next_due_at, seen.at) if not seen.due else t("now")
    yield t("Today (UTC)"), _sums(seen.today)
    yield t("Last 24 hours"), _sums(seen.last_24h)
    yield t("Failures in 24 hours"), _kinds(seen.last_24h.errors)
    yield t("Failing sources"), _kinds(counts.failing)
    for title, lines in (
        (t("Last visits"), [_last_visit(visit, seen.at) for visit in seen.last_visits]),
        (
            t("Next visits"),
            [f"{ago(v.due_at, seen.at)}: {v.source_id} {v.source_name}" for v in seen.next_visits],
        ),
    ):
        for number, line in enumerate(lines or [NOTHING]):
            yield title if number == 0 else "", line


def _last_visit(visit: Any, now: float) -> str:
    words = (
        visit.error_message if visit.outcome == "failed" else t("{count} new").format(count=visit.items_new)
    )
    return f"{ago(visit.started_at, now)}: {visit.source_id} {visit.source_name}: {words}"


def _sums(sums: "VisitSums") -> str:
    rate = sums.success_rate
    return t(
        "{visits} {visits:visit|visits}, {new} new {new:item|items}, {failed} failed, {rate} successful"
    ).format(
        visits=sums.total,
        new=sums.items_new,
        failed=sums.failed,
        rate=NOTHING if rate is None else f"{100 * rate:.1f} %",
    )


def _kinds(counts: dict[str, int]) -> str:
    if not counts:
        return NOTHING
    return ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items(), key=lambda each: -each[1]))


def status_as_json(seen: "Status") -> dict[str, Any]:
    """The status as programs read it."""
    data = asdict(seen)
    for name in ("at", "next_due_at"):
        data[name] = iso(data[name])
    for group, times in (("outages", "since_at"), ("last_visits", "started_at"), ("next_visits", "due_at")):
        for entry in data[group]:
            entry[times] = iso(entry[times])
    for name, sums in (("today", seen.today), ("last_24h", seen.last_24h)):
        data[name] |= {"total": sums.total, "failed": sums.failed, "success_rate": sums.success_rate}
    return data


def refresh(
    context: typer.Context,
    sources: Annotated[
        list[int] | None,
        typer.Argument(metavar="ID…", max=BIGGEST, help=t("The sources' numbers, as listed.")),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help=t("Every source that is switched on."))] = False,
    json: Json = False,
) -> None:
    from headwater.store.clock import database_time
    from headwater.store.sources import get_source, request_refresh

    if bool(sources) == all_:
        raise InputError("say which sources to refresh: their numbers, or --all")
    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        for source_id in sources or []:
            if not get_source(connection, source_id).schedule_enabled:
                raise InputError(
                    "source {id} is switched off; `headwater source resume {id}` switches it on", id=source_id
                )
        queued = request_refresh(connection, None if all_ else sources, database_time(connection))
    if json:
        print_json({"queued": queued})
    elif queued == 1:
        say(t("1 source is first in line; a running collector visits it at once"))
    else:
        say(
            t(
                "{count} {count:source is|sources are} first in line;"
                " a running collector visits {count:it|them} at once"
            ).format(count=queued)
        )

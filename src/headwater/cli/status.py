"""`headwater status`: how the collection goes, once or again and again. `headwater refresh`: sources to the head
of the line."""

import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.choosing import ManySources, find_ids
from headwater.cli.output import Json, facts_table, iso, print_facts, print_json, print_json_line, say
from headwater.cli.session import Session
from headwater.errors import InputError
from headwater.language import translate as t
from headwater.states import tell_failure_kind, tell_state
from headwater.wording import NOTHING, ago, duration

if TYPE_CHECKING:
    from headwater.store.core.database import Store
    from headwater.store.reports.hours import VisitSums
    from headwater.store.reports.overview import Status

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
    from headwater.store.core.clock import database_time
    from headwater.store.reports.overview import read_status

    with store.reading() as connection:
        return read_status(connection, database_time(connection))


def _watch(store: "Store") -> None:
    from rich.live import Live

    with Live(screen=True, auto_refresh=False) as live:
        while True:
            live.update(facts_table(_lines(_read(store))), refresh=True)
            time.sleep(WATCH_SECONDS)


def _print(seen: "Status") -> None:
    print_facts(_lines(seen))


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
    parts = [f"{count} {tell_state(state)}" for state, count in counts.states.items() if count]
    if counts.needs_attention:
        parts.append(t("{count} {count:needs|need} your attention").format(count=counts.needs_attention))
    yield t("Sources"), f"{counts.total} ({', '.join(parts)})" if parts else str(counts.total)
    yield t("Due now"), str(seen.due)
    yield t("Longest wait"), duration(seen.lag_seconds) if seen.due else NOTHING
    yield t("In flight"), str(seen.in_flight)
    yield t("Next visit"), ago(seen.next_due_at, seen.at) if not seen.due else t("now")
    yield t("Today (UTC)"), _sums(seen.today)
    yield t("Last 24 hours"), _sums(seen.last_24h)
    yield t("Made by"), _reasons(seen.spent)
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
    ordered = sorted(counts.items(), key=lambda each: -each[1])
    return ", ".join(f"{count} {tell_failure_kind(kind)}" for kind, count in ordered)


def _reasons(spent: dict[str, int]) -> str:
    """Visits by why they were made: only the policy's own count towards the budget."""
    names = {
        "adaptive": t("budget {count}"),
        "cadence": t("cadence {count}"),
        "interval": t("fixed intervals {count}"),
        "first": t("first visits {count}"),
        "asked": t("asked for {count}"),
        "pushed": t("pushed {count}"),
    }
    return (
        ", ".join(words.format(count=spent[why]) for why, words in names.items() if spent.get(why)) or NOTHING
    )


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
    sources: ManySources = None,
    all_: Annotated[bool, typer.Option("--all", help=t("Every source that is not paused."))] = False,
    json: Json = False,
) -> None:
    from headwater.sources.editing import act_on_sources
    from headwater.store.collecting.sources import request_refresh
    from headwater.store.core.clock import database_time

    if bool(sources) == all_:
        raise InputError("say which sources to refresh: their numbers or names, or --all")
    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        now = database_time(connection)
        if all_:
            queued = request_refresh(connection, None, now)
        else:
            acted = act_on_sources(connection, "refresh", find_ids(connection, sources or []), now)
            for _, problem in acted.problems:
                raise problem
            queued = len(acted.done)
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

"""`headwater doctor`: looks at everything that a working Headwater needs, and says what to do where it is not well."""

import importlib.util
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from headwater.cli.loop import run
from headwater.cli.output import Json, print_json, say
from headwater.cli.session import Session
from headwater.errors import FailureKind, FetchError, HeadwaterError, Text
from headwater.language import translate as t
from headwater.wording import duration

if TYPE_CHECKING:
    from headwater.config import Settings
    from headwater.store.core.database import Store
    from headwater.store.reports.health import Health

State = Literal["ok", "warning", "wrong"]

SCARCE_BYTES = 1 << 30
TOO_FEW_BYTES = 100 << 20
CLOCK_WARNING_SECONDS = 2.0
CLOCK_WRONG_SECONDS = 60.0
MANY_UNINDEXED = 10_000
HOSTS_TRIED = 3
NETWORK_SECONDS = 20.0
EVERYWHERE = {"0.0.0.0/0", "::/0"}

NO_WAY = (
    FailureKind.DNS,
    FailureKind.CONNECT,
    FailureKind.TIMEOUT,
    FailureKind.TLS,
    FailureKind.BLOCKED,
)
# The extras, and a module that each brings.
EXTRAS = {
    "video": "yt_dlp",
    "analyze": "jsonschema",
    "transcribe": "faster_whisper",
    "notify": "apprise",
    "browser": "playwright",
    "mcp": "mcp",
    "oidc": "joserfc",
    "prefect": "prefect",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, how it is, and what to do about it."""

    name: str
    state: State
    message: Text
    advice: Text | None = None


def doctor(
    context: typer.Context,
    repair: Annotated[
        bool, typer.Option("--repair", help=t("Recreate missing tables, columns and indexes, then check."))
    ] = False,
    json: Json = False,
) -> None:
    session: Session = context.obj
    findings: list[Finding] = []
    if repair:
        _repair(session)
    for finding in examine(session):
        findings.append(finding)
        if not json:
            _print(finding)
    wrong = [finding for finding in findings if finding.state == "wrong"]
    if json:
        print_json(
            {
                "ok": not wrong,
                "checks": [
                    {
                        "name": finding.name,
                        "state": finding.state,
                        "message": finding.message.render(),
                        "advice": None if finding.advice is None else finding.advice.render(),
                    }
                    for finding in findings
                ],
            }
        )
    elif wrong:
        say(t("{count} {count:thing is|things are} wrong").format(count=len(wrong)))
    else:
        say(t("Nothing is wrong."))
    if wrong:
        raise typer.Exit(1)


def _repair(session: Session) -> None:
    from headwater.store.core.schema import repair

    with session.open_store() as store, store.writing() as connection:
        repair(connection)


def _print(finding: Finding) -> None:
    mark = {"ok": "✓", "warning": "!", "wrong": "✗"}[finding.state]
    say(f"{mark} {finding.name}: {finding.message.render()}")
    if finding.advice is not None:
        say(f"    → {finding.advice.render()}")


def examine(session: Session) -> Iterator[Finding]:
    """All findings, one after the other; what cannot be looked at without something that is wrong is left out."""
    try:
        settings = session.settings
    except HeadwaterError as error:
        yield Finding(
            "settings",
            "wrong",
            Text("{problem}", problem=error.render()),
            Text("`headwater config` shows every setting and where it comes from, once they can be read"),
        )
        return
    yield from _settings(settings)
    yield from _disk(settings)
    yield from _extras()
    yield from _plans()
    yield from _plugins()
    yield from _database(settings)


def _settings(settings: "Settings") -> Iterator[Finding]:
    before = 0
    if EVERYWHERE & set(settings.allow_hosts):
        before += 1
        yield Finding(
            "settings",
            "warning",
            Text("HEADWATER_ALLOW_HOSTS allows every private address"),
            Text("name the hosts that sources need; a feed could make Headwater ask your other servers"),
        )
    if settings.host not in ("127.0.0.1", "::1", "localhost") and settings.public_url is None:
        before += 1
        yield Finding(
            "settings",
            "warning",
            Text("the dashboard listens on {host}, and HEADWATER_PUBLIC_URL is not set", host=settings.host),
            Text("put a reverse proxy with TLS in front of it and set HEADWATER_PUBLIC_URL to its address"),
        )
    if settings.public_url is not None and settings.public_url.startswith("http://"):
        before += 1
        yield Finding(
            "settings",
            "warning",
            Text("HEADWATER_PUBLIC_URL is not https: keys and passwords travel in the open"),
            Text("put a reverse proxy with TLS in front of it"),
        )
    if settings.contact_url is None:
        before += 1
        yield Finding(
            "settings",
            "warning",
            Text("publishers cannot reach you"),
            Text("set HEADWATER_CONTACT_URL to a page or a mail address; it is part of the User-Agent"),
        )
    if not before:
        yield Finding("settings", "ok", Text("none of them is dangerous"))


def _disk(settings: "Settings") -> Iterator[Finding]:
    place = settings.data_dir
    if settings.database.startswith("sqlite:///"):
        place = Path(settings.database.removeprefix("sqlite:///")).absolute().parent
    there = next((each for each in (place, *place.parents) if each.exists()), Path("/"))
    free = shutil.disk_usage(there).free
    values = {"free": f"{free / 1e9:.1f}", "place": there}
    message = Text("{free} GB are free in {place}", **values)
    if free >= SCARCE_BYTES:
        yield Finding("disk", "ok", message)
        return
    yield Finding(
        "disk",
        "wrong" if free < TOO_FEW_BYTES else "warning",
        message,
        Text("make room, or keep less: HEADWATER_RETENTION_DAYS and HEADWATER_RETENTION_ITEMS"),
    )


def _extras() -> Iterator[Finding]:
    missing = [name for name, module in EXTRAS.items() if importlib.util.find_spec(module) is None]
    if not missing:
        yield Finding("extras", "ok", Text("all are installed"))
        return
    yield Finding(
        "extras",
        "ok",
        Text("not installed: {names}", names=", ".join(missing)),
        Text("install one when you need it, as in: pip install 'headwater[{name}]'", name=missing[0]),
    )


def _plans() -> Iterator[Finding]:
    from headwater.schedule.arithmetic import load_native

    if load_native() is not None:
        yield Finding("plans", "ok", Text("made by compiled code"))
        return
    yield Finding(
        "plans",
        "warning",
        Text(
            "made by Python code, which takes ten times as long: this installation has no compiled copy for its Python"
        ),
        Text("install a wheel made for this machine, or install a C compiler and reinstall headwater"),
    )


def _plugins() -> Iterator[Finding]:
    from headwater.cli.plugins import plugin_rows

    rows = plugin_rows()
    broken = [row for row in rows if row["problem"]]
    for row in broken:
        yield Finding(
            "plugins",
            "wrong",
            Text("{name} of {package} is disabled: {problem}", **row),
            Text("upgrade or uninstall {package}", package=row["package"]),
        )
    if not broken:
        yield Finding("plugins", "ok", Text("{count} installed", count=len(rows)))


def _database(settings: "Settings") -> Iterator[Finding]:
    from headwater.store.core.database import Store
    from headwater.store.core.migrate import HEAD, UNFINISHED, known_revisions, revision

    try:
        with Store(settings.database) as store:
            with store.reading() as connection:
                current = revision(connection)
            yield Finding("database", "ok", Text("{url} answers", url=store.shown_url))
            if current is None:
                yield Finding("migrations", "ok", Text("it is empty; the first start makes its tables"))
            elif current == UNFINISHED:
                yield Finding(
                    "migrations",
                    "wrong",
                    Text("it is incomplete"),
                    Text("run `headwater migrate-to` once more and let it finish"),
                )
            elif current not in known_revisions():
                yield Finding(
                    "migrations",
                    "wrong",
                    Text("a newer Headwater has written it (schema {schema})", schema=current),
                    Text("upgrade Headwater here too"),
                )
            elif current != HEAD:
                yield Finding(
                    "migrations",
                    "warning",
                    Text("its schema is {schema}, the newest is {newest}", schema=current, newest=HEAD),
                    Text("make a backup; the next start brings it up to date"),
                )
            else:
                yield Finding("migrations", "ok", Text("its schema is the newest, {schema}", schema=HEAD))
                damage = list(_schema(store))
                yield from damage
                if not damage:
                    yield from _contents(settings, store)
    except HeadwaterError as error:
        yield Finding(
            "database",
            "wrong",
            Text("{problem}", problem=error.render()),
            Text("check that it is running and that HEADWATER_DATABASE_URL is correct"),
        )


def _schema(store: "Store") -> Iterator[Finding]:
    """What differs from the schema that the database says it has."""
    from sqlalchemy import Table

    from headwater.store.core.schema import schema_differences

    with store.reading() as connection:
        differences = schema_differences(connection)
    for difference in differences:
        if difference.missing is None:
            advice = Text("`headwater backup FILE`, then `headwater restore FILE` into a new database")
        elif isinstance(difference.missing, Table):
            advice = Text("`headwater doctor --repair` recreates it, empty; restore its rows from a backup")
        else:
            advice = Text("`headwater doctor --repair` recreates it")
        yield Finding("schema", "wrong", difference.message, advice)


def _contents(settings: "Settings", store: "Store") -> Iterator[Finding]:
    from headwater.store.reports.health import read_health

    before = time.time()
    with store.reading() as connection:
        health = read_health(connection)
    yield _clock(health, before, time.time())
    yield _collecting(health)
    yield _runs(health)
    yield _search(health)
    yield from _sources(health)
    yield _network(settings, store)


def _clock(health: "Health", before: float, after: float) -> Finding:
    advice = Text("let this machine's clock be set by a time server (systemd-timesyncd, chrony)")
    apart = max(before - health.at, health.at - after, 0.0)
    if health.newest_at - after > CLOCK_WRONG_SECONDS:
        return Finding(
            "clock",
            "wrong",
            Text("some records are dated {time} in the future", time=duration(health.newest_at - after)),
            advice,
        )
    if apart > CLOCK_WARNING_SECONDS:
        return Finding(
            "clock",
            "wrong" if apart > CLOCK_WRONG_SECONDS else "warning",
            Text("this machine and the database are {time} apart", time=duration(apart)),
            advice,
        )
    return Finding("clock", "ok", Text("it agrees with the database's"))


def _collecting(health: "Health") -> Finding:
    from headwater.store.reports.health import LATE_SECONDS

    waits = duration(health.lag_seconds)
    if health.lag_seconds > LATE_SECONDS:
        idle = health.last_visit_at is None or health.at - health.last_visit_at > LATE_SECONDS
        return Finding(
            "collecting",
            "wrong" if idle else "warning",
            Text(
                "{count} {count:source is|sources are} due, the first since {time}",
                count=health.due,
                time=waits,
            ),
            Text("no collector is running: start `headwater serve` or `headwater collect --loop`")
            if idle
            else Text("raise COLLECTOR_CONCURRENCY, or start another collector"),
        )
    if health.endless_leases:
        return Finding(
            "collecting",
            "warning",
            Text(
                "{count} {count:source is|sources are} leased for days: a machine's clock was ahead",
                count=health.endless_leases,
            ),
            Text("correct that clock; a running collector releases the leases within the hour"),
        )
    return Finding(
        "collecting",
        "ok",
        Text("{due} sources are due, {flying} are being visited", due=health.due, flying=health.in_flight),
    )


def _runs(health: "Health") -> Finding:
    if health.late_runs:
        return Finding(
            "pipelines",
            "wrong",
            Text(
                "{count} {count:run is|runs are} stuck, the first since {time}",
                count=health.late_runs,
                time=duration(health.oldest_run_seconds),
            ),
            Text("start `headwater worker`, and look at `headwater runs list`"),
        )
    return Finding("pipelines", "ok", Text("no run is stuck"))


def _search(health: "Health") -> Finding:
    message = Text("{count} {count:item is|items are} not in the search index yet", count=health.unindexed)
    if health.unindexed > MANY_UNINDEXED:
        return Finding(
            "search", "warning", message, Text("`headwater items --search WORD` brings it up to date")
        )
    return Finding("search", "ok", message)


def _sources(health: "Health") -> Iterator[Finding]:
    for machine in health.outages:
        yield Finding(
            "network",
            "wrong",
            Text("the network of {machine} is down, says its collector", machine=machine),
            Text("check its connection and name server"),
        )
    if health.needs_attention:
        yield Finding(
            "sources",
            "warning",
            Text(
                "{count} {count:source needs|sources need} your attention: credentials are refused, or the address"
                " has moved to another origin",
                count=health.needs_attention,
            ),
            Text("`headwater source list` says what to do"),
        )
    yield Finding(
        "sources",
        "ok",
        Text(
            "{count} {count:source|sources}, {failing} failing", count=health.sources, failing=health.failing
        ),
    )


def _network(settings: "Settings", store: "Store") -> Finding:
    from headwater.collect.host_queues import host_of
    from headwater.store.reports.health import some_addresses

    with store.reading() as connection:
        addresses = {host_of(url): url for url in reversed(some_addresses(connection, 50))}
    tried = list(addresses.items())[-HOSTS_TRIED:]
    if not tried:
        return Finding("network", "ok", Text("not checked: there is no source to visit"))
    problems = run(_reach(settings, [url for _, url in tried]))
    hosts = ", ".join(host for host, _ in tried)
    if len(problems) < len(tried):
        return Finding("network", "ok", Text("reached {hosts}", hosts=hosts))
    return Finding(
        "network",
        "wrong",
        Text("none of {hosts} can be reached: {problem}", hosts=hosts, problem=problems[0].render()),
        Text("check this machine's connection, name server and firewall, and HEADWATER_PROXY"),
    )


async def _reach(settings: "Settings", urls: list[str]) -> list[FetchError]:
    """What went wrong, of what can only be the network. Any answer is a good one here."""
    import asyncio

    from headwater.fetch.client import make_fetcher
    from headwater.fetch.message import Request

    problems: list[FetchError] = []
    async with make_fetcher(settings) as fetcher:
        for url in urls:
            try:
                async with asyncio.timeout(NETWORK_SECONDS):
                    await fetcher.get(Request(url))
            except TimeoutError:
                problems.append(
                    FetchError(FailureKind.TIMEOUT, "no answer within {seconds:g} s", seconds=NETWORK_SECONDS)
                )
            except FetchError as error:
                if error.kind in NO_WAY:
                    problems.append(error)
    return problems

"""One soak: publisher, collectors, workers and API on each database, faults all the while, and the reckoning."""

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from sqlalchemy import func, select

from headwater.store.database import Store
from headwater.store.tables import collection_records, item_versions, items, pipeline_executions, sources
from tests.databases import PrivatePostgres, postgres_database
from tests.soak.fleet import FROZEN_SECONDS, Fleet
from tests.soak.measuring import bookkeeping_leaks, count_rows
from tests.soak.publishing import Publishing, known

DATABASES = ("sqlite", "postgresql")
SETTLING_SECONDS = 90.0
QUIET_SHARE = 0.1  # at the end nobody is disturbed
WARMING_SHARE = 0.25  # at the beginning everybody is


@dataclass
class Report:
    """What was found to be wrong, and the figures."""

    findings: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def soak(
    seconds: float, databases: Sequence[str], count: int, seed: int, tell: Callable[[str], None]
) -> Report:
    """Everything on each of the databases at the same time, for so long."""
    report = Report()
    rng = Random(seed)
    with ExitStack() as stack:
        publishing = stack.enter_context(Publishing(count))
        fleets, restarts = [], []
        for name in databases:
            url, restart = stack.enter_context(_database(name))
            directory = Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix=f"headwater-soak-{name}-"))
            )
            fleet = Fleet(name, url, directory, publishing, Random(rng.random()))
            stack.callback(fleet.kill_all)
            fleets.append(fleet)
            restarts += [restart] if restart else []
        _make_trouble(seconds, fleets, restarts, rng, tell)
        publishing.end()
        everything, due = publishing.published()
        tell(f"published {len(due)} items; waiting for the rest to be collected and delivered")
        for fleet in fleets:
            fleet.wake_up()
        for fleet in fleets:
            with Store.open(fleet.url) as store:
                fleet.wait_until(lambda store=store: _is_settled(store, due), SETTLING_SECONDS)  # type: ignore[misc]
                fleet.end()
                tell(f"{fleet.name} has settled and ended")
                _reckon(fleet, store, publishing, everything, due, report)
        report.lines.append(f"{publishing.requests} requests answered by the publisher")
        most_megabytes = max(8.0, seconds / 60)
        for fleet in fleets:
            report.lines += fleet.meter.table()
            report.findings += fleet.meter.leaks(most_megabytes, 8.0) + fleet.findings
    return report


@contextmanager
def _database(name: str) -> Iterator[tuple[str, Callable[[bool], None] | None]]:
    """Its URL, and how to restart it, where that is possible."""
    if name == "sqlite":
        with tempfile.TemporaryDirectory(prefix="headwater-soak-") as directory:
            yield f"sqlite:///{directory}/headwater.db", None
        return
    with PrivatePostgres() as server, postgres_database(server.url, "soak") as url:
        yield url, lambda hard: server.restart("immediate" if hard else "fast", 1.0)


def _make_trouble(
    seconds: float,
    fleets: list[Fleet],
    restarts: list[Callable[[bool], None]],
    rng: Random,
    tell: Callable[[str], None],
) -> None:
    start = time.monotonic()
    next_trouble = start + 5.0
    next_restart = start + max(seconds / 10, 12.0)
    next_word = start + 30.0
    while (now := time.monotonic()) < start + seconds:
        for fleet in fleets:
            fleet.look_after()
        if now > next_trouble and now < start + seconds * (1 - QUIET_SHARE):
            spare = now > start + seconds * WARMING_SHARE
            for fleet in fleets:
                fleet.trouble(spare=spare)
            next_trouble = now + rng.uniform(3.0, 9.0)
        if now > next_restart and now < start + seconds * (1 - QUIET_SHARE):
            for restart in restarts:
                restart(rng.random() < 0.5)
            next_restart = now + max(seconds / 10, 12.0)
        if now > next_word:
            done = ", ".join(f"{each.name} {each.kills} killed, {each.freezes} frozen" for each in fleets)
            tell(f"{now - start:.0f} s: {done}")
            next_word = now + 30.0
        time.sleep(0.5)


def _is_settled(store: Store, due: set[tuple[str, int]]) -> bool:
    with store.reading() as connection:
        stored = {known(url) for url in connection.execute(select(items.c.url)).scalars()}
        runs = select(func.count()).where(pipeline_executions.c.completed_at.is_(None))
        return due <= stored and connection.execute(runs).scalar_one() == 0


def _reckon(
    fleet: Fleet,
    store: Store,
    publishing: Publishing,
    everything: set[tuple[str, int]],
    due: set[tuple[str, int]],
    report: Report,
) -> None:
    """Nothing lost, nothing doubled, nothing left over."""

    def wrong(what: str, which: object) -> None:
        if which:
            report.findings.append(f"{fleet.name}: {what}: {str(which)[:500]}")

    with store.reading() as connection:
        stored = Counter(known(url) for url in connection.execute(select(items.c.url)).scalars())
        record = collection_records.c
        counted, visits = connection.execute(select(func.sum(record.items_new), func.count())).one()
        runs = Counter(connection.execute(select(pipeline_executions.c.item_id)).scalars())
        how = dict(
            connection.execute(
                select(pipeline_executions.c.status, func.count()).group_by(pipeline_executions.c.status)
            )
            .tuples()
            .all()
        )
        versions = connection.execute(select(func.count()).select_from(item_versions)).scalar_one()
        leased = (
            connection.execute(select(sources.c.id).where(sources.c.lease_until.is_not(None))).scalars().all()
        )
    rows = count_rows(store)
    told = publishing.deliveries[fleet.name]
    wrong("items lost", sorted(due - set(stored)))
    wrong("items nobody published", sorted(set(stored) - everything))
    wrong("items stored twice", sorted(each for each, count in stored.items() if count > 1))
    wrong("items changed that did not change", versions)
    wrong("items counted as new more or less than once", (counted or 0) - stored.total())
    wrong(
        "items without a run, or with several",
        stored.total() - len(runs) or [i for i, n in runs.items() if n > 1],
    )
    wrong("runs that did not complete", {status: n for status, n in how.items() if status != "completed"})
    wrong("items never delivered", sorted(set(stored) - set(told)))
    wrong("items delivered under several keys", sorted(each for each, keys in told.items() if len(keys) > 1))
    wrong("leases left over", leased)
    for leak in bookkeeping_leaks(rows, len(publishing.sources)):
        wrong("rows left over", leak)
    again = sum(keys.total() for keys in told.values()) - len(told)
    report.lines += [
        f"{fleet.name}: {visits} visits, {stored.total()} items, {how.get('completed', 0)} runs; {fleet.kills} kills,"
        f" {fleet.freezes} freezes past every lease ({FROZEN_SECONDS:g} s)",
        f"{fleet.name}: {again} deliveries made again with the same key; the API answered {dict(fleet.answers)}",
        f"{fleet.name}: rows {', '.join(f'{name} {count}' for name, count in sorted(rows.items()) if count)}",
    ]

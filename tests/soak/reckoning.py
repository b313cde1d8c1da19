"""The books after a soak: what was published against what is stored, run and delivered, and when it was seen."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np
from sqlalchemy import Connection, func, select

from headwater.store.core.database import Store
from headwater.store.core.tables import collection_records, item_versions, items, pipeline_executions, sources
from tests.leases import leases
from tests.soak.fleet import FROZEN_SECONDS, LEASE_SECONDS, Fleet
from tests.soak.measuring import bookkeeping_leaks, count_rows
from tests.soak.publishing import Known, Published, Publishing, known

# A source waits for the lease of a collector that was killed, perhaps of another one killed after it; no longer.
LATE_SECONDS = 4 * LEASE_SECONDS
MOST_TRACED = 5


@dataclass
class Report:
    """What was found to be wrong, and the figures."""

    findings: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Visited:
    at: float
    status: str
    found: int
    new: int
    overflow: bool
    problem: str

    def told(self, since: float) -> str:
        return f"{self.at - since:+.0f} s {self.status} {self.new}/{self.found} {self.problem}".rstrip()


def is_settled(store: Store, published: Published) -> bool:
    """Whether everything has arrived and gone all its way."""
    with store.reading() as connection:
        stored = {known(url) for url in connection.execute(select(items.c.url)).scalars()}
        runs = select(func.count()).where(pipeline_executions.c.completed_at.is_(None))
        return (
            published.due <= stored
            and connection.execute(runs).scalar_one() == 0
            and not _uncorrected(connection, published)
        )


def reckon(fleet: Fleet, store: Store, publishing: Publishing, report: Report) -> None:
    """Nothing lost, nothing doubled, nothing late, nothing left over."""
    published = publishing.published()

    def wrong(what: str, which: object) -> None:
        if which:
            report.findings.append(f"{fleet.name}: {what}: {str(which)[:500]}")

    with store.reading() as connection:
        seen_at = {
            known(url): at for url, at in connection.execute(select(items.c.url, items.c.first_seen_at))
        }
        stored = Counter(known(url) for url in connection.execute(select(items.c.url)).scalars())
        counted = connection.execute(select(func.sum(collection_records.c.items_new))).scalar() or 0
        runs = Counter(connection.execute(select(pipeline_executions.c.item_id)).scalars())
        how = Counter(connection.execute(select(pipeline_executions.c.status)).scalars())
        changed = select(items.c.url).join(item_versions, item_versions.c.item_id == items.c.id)
        versions = Counter(known(url) for url in connection.execute(changed).scalars())
        uncorrected = _uncorrected(connection, published)
        visits = _visits(connection)
    left_over = sorted(leases(store))
    rows = count_rows(store)
    told = publishing.deliveries[fleet.name]
    lost = sorted(published.due - set(stored))
    wrong("items lost", lost)
    for each in lost[:MOST_TRACED]:
        wrong(f"  {each}, published at 0 s", _trace(visits[each[0]], published.everything[each]))
    wrong("items that were never published", sorted(set(stored) - set(published.everything)))
    wrong("items stored twice", _several(stored))
    wrong("items changed that did not change", sorted(set(versions) - published.to_correct))
    wrong("items changed several times", _several(versions))
    wrong("corrections missed", uncorrected)
    wrong("items counted as new more or less than once", counted - stored.total())
    wrong(
        "items without a run, or with several",
        stored.total() - len(runs) or [item for item, count in runs.items() if count > 1],
    )
    wrong("runs that did not complete", {status: n for status, n in how.items() if status != "completed"})
    wrong("items never delivered", sorted(set(stored) - set(told)))
    wrong("items delivered under several keys", sorted(each for each, keys in told.items() if len(keys) > 1))
    wrong("leases left over", left_over)
    for leak in bookkeeping_leaks(rows, len(publishing.sources)):
        wrong("rows left over", leak)
    failures = Counter(
        visit.problem for each in visits.values() for visit in each if visit.status == "failed"
    )
    wrong(
        "visits failed though the publisher answered",
        {problem: count for problem, count in failures.items() if not problem.startswith("timeout")},
    )
    late = {each: seen_at[each] - published.everything[each] for each in published.due & set(seen_at)}
    for each, seconds in late.items():
        if seconds > LATE_SECONDS and all(visit.status != "failed" for visit in visits[each[0]]):
            wrong(f"{each} seen {seconds:.0f} s late", _trace(visits[each[0]], published.everything[each]))
    again = sum(keys.total() for keys in told.values()) - len(told)
    middle, most = np.percentile([*late.values()] or [0.0], (50, 99))
    report.lines += [
        f"{fleet.name}: {sum(map(len, visits.values()))} visits, {sum(failures.values())} failed"
        f" {dict(failures) or ''}",
        f"{fleet.name}: {stored.total()} items, {sum(versions.values())} corrected, {how.get('completed', 0)} runs;"
        f" {fleet.kills} kills, {fleet.freezes} freezes past every lease ({FROZEN_SECONDS:g} s)",
        f"{fleet.name}: seen after {middle:.1f} s at the median, {most:.1f} s at 99 %,"
        f" {max(late.values(), default=0.0):.1f} s at most",
        f"{fleet.name}: {again} deliveries made again with the same key; the API answered {dict(fleet.answers)}",
        f"{fleet.name}: rows {', '.join(f'{name} {count}' for name, count in sorted(rows.items()) if count)}",
    ]


def _several(counts: Counter[Known]) -> list[Known]:
    return sorted(each for each, count in counts.items() if count > 1)


def _uncorrected(connection: Connection, published: Published) -> list[Known]:
    """Corrected items that are stored as they were before."""
    texts = select(items.c.url, func.coalesce(items.c.content, items.c.summary, ""))
    return sorted(
        each
        for url, text in connection.execute(texts)
        if (each := known(url)) in published.corrected and "not tomorrow" not in text
    )


def _visits(connection: Connection) -> dict[str, list[Visited]]:
    """By source, its visits in their order."""
    found: dict[str, list[Visited]] = defaultdict(list)
    record = collection_records.c
    query = select(sources.c.url, collection_records).join(sources, sources.c.id == record.source_id)
    for row in connection.execute(query.order_by(record.started_at)):
        problem = "" if row.error_kind is None else f"{row.error_kind}: {row.error_message}"
        found[row.url.split("/")[3]].append(
            Visited(row.started_at, row.status, row.items_found, row.items_new, row.overflow, problem)
        )
    return found


def _trace(visits: list[Visited], published_at: float) -> str:
    """The visits around a moment, so that one sees what came in between."""
    after = next((n for n, visit in enumerate(visits) if visit.at > published_at), len(visits))
    return ", ".join(visit.told(published_at) for visit in visits[max(after - 2, 0) : after + 4])

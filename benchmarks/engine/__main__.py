"""What collecting costs: `make bench-engine`, on SQLite and on PostgreSQL.

CPU seconds (user and system) per 1,000 visits of Headwater's whole process, in three phases: first visits (200,
parse, store every item), all unchanged (304), and a tenth of the feeds changed. Beside it, in the same run, the bare
aiohttp client on the same event loop and bare pycurl, which make the same requests and do nothing with the answers, and
`reader`. Then the same requests over TLS (see `tls.py`).
What a PostgreSQL server spends is a separate process tree: it is shown, and not part of Headwater's figure.

Then the cost of a claim of 100 among few and among very many sources, and the peak memory of a large fleet. Ratios
are what to read: the absolute figures are this machine's. Each contender's cheapest round
counts. Exit status 1 when a target is missed.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.databases import postgres_server

from benchmarks.engine.contenders import Contender, bare, bare_curl, contender, cpu_seconds, headwater, reader
from benchmarks.engine.databases import new_database, server_clock
from benchmarks.engine.origin import feed_url, publish, serving
from benchmarks.engine.processes import measure_processes
from benchmarks.engine.scale import CLAIM, claim_costs, fill, peak_memory
from benchmarks.engine.tls import measure_tls
from benchmarks.verdict import Verdict
from headwater.store.core.database import Store
from headwater.store.reading.search import index_all

ITEMS = 20
FIRST_ROUNDS = 10
KINDS = ("SQLite", "PostgreSQL")
PHASES = ("first visit", "all 304", "10 % changed")
MOST_OF_BARE = {"all 304": 1.5}
SHARED_BUFFERS = "2GB"  # as docs/scaling.md says for a million sources
LEAST_OF_READER = {"first visit": 15.0, "all 304": 6.0, "10 % changed": 12.0}
MOST_MEGABYTES = 160


@dataclass
class Costs:
    """CPU seconds per 1,000 visits, by phase, each round's. What else the machine does only ever adds to them."""

    name: str
    by_phase: dict[str, list[float]] = field(default_factory=dict)

    def add(self, phase: str, seconds: float) -> None:
        self.by_phase.setdefault(phase, []).append(seconds * 1000)

    def of(self, phase: str) -> float:
        return min(self.by_phase[phase])


def measure_visits(options: argparse.Namespace, server_url: str, directory: Path, verdict: Verdict) -> None:
    with serving(options.sources, ITEMS) as port, ExitStack() as stack:
        urls = [feed_url(port, number, options.sources) for number in range(options.sources)]
        few = urls[: options.reader_sources]
        contenders: list[tuple[Costs, Contender, Callable[[], float], list[str]]] = []
        databases: dict[str, str] = {}

        def enter(name: str, kind: str, feeds: list[str], *what: object) -> None:
            costs, clock = Costs(name), server_clock(kind, server_url)
            contenders.append((costs, stack.enter_context(contender(*what)), clock, feeds))  # type: ignore[arg-type]

        warm_up = f"{urls[0]}?warm-up"
        enter("bare aiohttp", "SQLite", urls, bare, warm_up, options.at_once, True)
        enter("bare aiohttp, asyncio's loop", "SQLite", urls, bare, warm_up, options.at_once, False)
        enter("bare pycurl", "SQLite", urls, bare_curl, warm_up, options.at_once)
        for kind in options.databases:
            databases[kind] = stack.enter_context(new_database(kind, directory, server_url))
            enter(
                f"headwater, {kind}",
                kind,
                urls,
                headwater,
                databases[kind],
                warm_up,
                options.at_once,
            )
        if few:
            enter("reader", "SQLite", few, reader, str(directory / "reader.db"), warm_up)

        servers = {costs.name: Costs(f"({costs.name}: the server)") for costs, *_ in contenders}

        def visit(phase: str, part: slice | None = None) -> None:
            for costs, there, clock, feeds in contenders:  # in turns, so that a busy moment slows them all
                before = clock()
                new = None if part is None else feeds[part]
                costs.add(phase, there.visit(new))
                servers[costs.name].add(phase, (clock() - before) / len(new or feeds))

        for part in range(FIRST_ROUNDS):
            visit("first visit", slice(part, None, FIRST_ROUNDS))
        for _ in range(options.rounds):
            visit("all 304")
        for _ in range(options.rounds):
            publish(port)
            visit("10 % changed")
        indexing = {kind: index_cost(database) for kind, database in databases.items()}

    all_costs = {costs.name: costs for costs, *_ in contenders}
    print(
        f"\nCPU seconds per 1,000 visits, {options.sources} feeds of {ITEMS} items, {options.at_once} at once"
    )
    print(f"  {'':34}" + "".join(f"{phase:>15}" for phase in PHASES))
    for costs in (*all_costs.values(), *(servers[name] for name in all_costs if name.endswith("PostgreSQL"))):
        print(f"  {costs.name:34}" + "".join(f"{costs.of(phase):15.3f}" for phase in PHASES))
    for kind, seconds in indexing.items():
        # No part of a visit: it is done by serving and searching.
        print(f"  {f'(the search index of it all, {kind})':34}{seconds / options.sources * 1000:15.3f}")
    print()
    for kind in options.databases:
        ours = all_costs[f"headwater, {kind}"]
        for phase, most in MOST_OF_BARE.items():
            ratio = ours.of(phase) / all_costs["bare aiohttp"].of(phase)
            verdict.tell(f"{kind}: {phase}, times the bare client's", ratio, "×", most=most)
        if few:
            for phase, least in LEAST_OF_READER.items():
                ratio = all_costs["reader"].of(phase) / ours.of(phase)
                verdict.tell(f"{kind}: {phase}, times less than reader's", ratio, "×", least=least)


def index_cost(database: str) -> float:
    """CPU seconds to put everything that is stored into the search index."""
    with Store.open(database) as store:
        began = cpu_seconds()
        index_all(store, time.time())
        return cpu_seconds() - began


def measure_claims(options: argparse.Namespace, server_url: str, directory: Path, verdict: Verdict) -> None:
    print(f"\nCPU milliseconds of one claim of {CLAIM}, the server's included")
    for kind in options.databases:
        with ExitStack() as stack:
            stores = []
            for count in (options.few, options.many):
                database = stack.enter_context(new_database(kind, directory, server_url))
                stores.append(stack.enter_context(Store.open(database)))
                fill(
                    stores[-1],
                    count,
                    url="'http://host' || n || '.example/feed'",
                    etag="'\"0123456789abcdef\"'",
                )
            few, many = claim_costs(stores, options.claims, server_clock(kind, server_url))
        print(f"  {kind:12}among {options.few:>9,}: {few:.2f}   among {options.many:>9,}: {many:.2f}")
        verdict.tell(f"{kind}: among many, times among few", many / few, "×", most=1.3)


def measure_memory(options: argparse.Namespace, server_url: str, directory: Path, verdict: Verdict) -> None:
    print(
        f"\nPeak memory of a fresh process, {options.fleet:,} sources each on its own host, 200 at once,"
        f" after {options.fleet_visits:,} visits"
    )
    feeds = 1000
    with serving(feeds, ITEMS) as port:
        for kind in options.databases:
            with new_database(kind, directory, server_url) as database:
                peak, before, pace = peak_memory(
                    database, port, feeds, options.fleet, options.fleet_visits, 200
                )
            print(f"  {kind:12}{before:.0f} MB before the first visit; {pace:.0f} visits/s")
            verdict.tell(f"{kind}: peak memory", peak, " MB", most=MOST_MEGABYTES)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--sources", type=int, default=1000, help="feeds to visit")
    arguments.add_argument(
        "--reader-sources", type=int, default=1000, help="feeds that reader visits; 0: none"
    )
    arguments.add_argument(
        "--rounds", type=int, default=10, help="of every phase but the first; the cheapest counts"
    )
    arguments.add_argument(
        "--at-once", type=int, default=50, help="visits at once, ours and the bare client's"
    )
    arguments.add_argument("--databases", nargs="+", choices=KINDS, default=KINDS)
    arguments.add_argument("--few", type=int, default=10_000, help="sources among which to claim")
    arguments.add_argument("--many", type=int, default=1_000_000, help="sources among which to claim")
    arguments.add_argument("--claims", type=int, default=30, help="tens of claims")
    arguments.add_argument("--fleet", type=int, default=100_000, help="sources, to see the memory they take")
    arguments.add_argument("--fleet-visits", type=int, default=10_000, help="visits to the fleet")
    arguments.add_argument("--crowd", type=int, default=20_000, help="sources for one and two processes")
    arguments.add_argument("--only", choices=tuple(_PARTS), help="one part of it")
    options = arguments.parse_args()
    verdict = Verdict("engine")
    with postgres_server(SHARED_BUFFERS) as server_url, tempfile.TemporaryDirectory() as directory:
        for name, measure in _PARTS.items():
            if options.only in (None, name):
                measure(options, server_url, Path(directory), verdict)
    return verdict.exit_code()


_PARTS = {
    "visits": measure_visits,
    "tls": measure_tls,
    "processes": measure_processes,
    "claims": measure_claims,
    "memory": measure_memory,
}

if __name__ == "__main__":
    sys.exit(main())

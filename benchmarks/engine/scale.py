"""What a large fleet costs: one claim among many sources, and the memory of collecting from many."""

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks.engine.contenders import Pipe, contender, cpu_seconds, peak_megabytes
from headwater.model import Source
from headwater.store.collecting.queue import claim_due, release_leases
from headwater.store.core.database import Store

CLAIM = 100
FIRST_EVERY = 10  # of the fleet whose memory is measured: the others are unchanged since their last visit
_SOURCES = """
INSERT INTO sources (name, type, url, url_key, due_at, next_fetch_at, last_fetched_at, created_at, updated_at,
    fetch_count, etag, policy_state, plan_reason)
SELECT 'source ' || n, 'rss.feed', {url}, {url}, 1.0 + (n * n * 7919 + n * 104729) % 1000003, 1.0, {visited_at},
    1.0, 1.0, 7, {etag}, {state}, '{reason}'
FROM {numbers}
"""
_STATS = """
INSERT INTO source_stats (source_id, next_due_at, last_check_at, check_count, created_at, updated_at)
SELECT CAST(n AS TEXT), 1, 1, 7, 1, 1 FROM {numbers}
"""


def fill(store: Store, count: int, *, url: str, etag: str, visited_at: str = "1.0") -> None:
    """A fleet, all of it due, its places in line in no order of its numbers. SQL expressions of `n` say the rest."""
    if store.is_sqlite:
        numbers = f"(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {count}) SELECT n FROM s)"
        etag, state = f"CAST({etag} AS BLOB)", "zeroblob(600)"
    else:
        numbers = f"generate_series(1::bigint, {count}) AS s(n)"
        etag, state = f"convert_to({etag}, 'UTF8')", "decode(repeat('00', 600), 'hex')"
    reason = '{"policy": "adaptive", "decided_by": "policy"}'
    words = {"numbers": numbers, "state": state, "reason": reason, "visited_at": visited_at}
    with store.writing() as connection:
        for statement in (_SOURCES, _STATS):
            text = statement.format(**words, url=url, etag=etag)
            connection.exec_driver_sql(text if store.is_sqlite else text.replace("%", "%%"))
    if not store.is_sqlite:
        with (
            store.engine.connect() as plain,
            plain.execution_options(isolation_level="AUTOCOMMIT") as connection,
        ):
            connection.exec_driver_sql("VACUUM ANALYZE sources")
            connection.exec_driver_sql("VACUUM ANALYZE source_stats")


def claim_costs(stores: list[Store], claims: int, clock: Callable[[], float]) -> list[float]:
    """CPU milliseconds of one claim on each store, the server's among them, measured in turns.

    As many are claimed as are in flight in a busy process. What puts them back to the end of the line is not
    counted: visits do that.
    """
    spent = [0.0 for _ in stores]
    for turn in range(claims + 1):
        for index, store in enumerate(stores):
            began = cpu_seconds() + clock()
            claimed: list[Source] = []
            for _ in range(10):
                with store.writing() as connection:
                    claimed += claim_due(connection, CLAIM, now=1e9, lease_until=2e9)
            if turn:  # the first warms up
                spent[index] += cpu_seconds() + clock() - began
            assert len(claimed) == 10 * CLAIM
            with store.writing() as connection:
                release_leases(connection, claimed, {source.id: 1e8 + turn for source in claimed})
    return [seconds / claims / 10 * 1000 for seconds in spent]


def _collect(pipe: Pipe, database_url: str, visits: int, at_once: int) -> None:
    """Collect from a fleet until so many visits are done."""
    from headwater.cli.loop import run
    from headwater.collect.engine import Engine
    from headwater.config import load_settings

    settings = replace(
        load_settings(directory=Path(tempfile.gettempdir()), environment={}),
        allow_hosts=("127.0.0.0/8",),
        collector_concurrency=at_once,
    )
    store = Store.open(database_url)

    async def main() -> None:
        async with Engine(store, settings, on_settled=lambda _: visited()) as engine:

            def visited() -> None:
                if engine.tally.visits >= visits:
                    engine.stop()

            before = peak_megabytes()
            began = time.monotonic()
            await engine.run()
            tally = engine.tally
            assert not tally.failed, tally.failures[:3]
            assert tally.items_new, tally
            pipe.send((peak_megabytes(), before, tally.visits / (time.monotonic() - began)))

    run(main())
    store.close()


def peak_memory(
    database_url: str, port: int, feeds: int, fleet: int, visits: int, at_once: int
) -> tuple[float, float, float]:
    """Megabytes at the peak of collecting, megabytes before it began, and visits a second.

    Every source is its own host. The process that collects is another than the one that makes the fleet.
    """
    with Store.open(database_url) as store:
        fill(
            store,
            fleet,
            url=f"'http://127.' || (n / 65536) || '.' || (n / 256 % 256) || '.' || (n % 256) || ':{port}/'"
            f" || (n % {feeds}) || '.xml?' || n",
            etag=f"CASE WHEN n % {FIRST_EVERY} = 0 THEN '' ELSE '\"' || (n % {feeds}) || '-0-0123456789abcdef\"' END",
            visited_at=f"CASE WHEN n % {FIRST_EVERY} = 0 THEN NULL ELSE 1.0 END",
        )
    with contender(_collect, database_url, visits, at_once) as collecting:
        figures: tuple[float, float, float] = collecting.ready
        return figures

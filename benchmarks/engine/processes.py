"""All cores: visits a second by one and by two processes, and the dashboard's answers while they collect."""

import argparse
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson

from benchmarks.engine.databases import new_database
from benchmarks.engine.origin import serving
from benchmarks.engine.scale import fill
from benchmarks.verdict import Verdict
from headwater.store.core.database import Store

FEEDS = 1000
ITEMS = 5
AT_ONCE = 50
REQUESTS = 150
MOST_OF_IDLE = 1.5


def _fill(store: Store, port: int, count: int) -> None:
    """A fleet that was visited before, nine in ten of it unchanged, each source its own host."""
    fill(
        store,
        count,
        url=f"'http://127.' || (n / 65536 + 1) || '.' || (n / 256 % 256) || '.' || (n % 256) || ':{port}/'"
        f" || (n % {FEEDS}) || '.xml?' || n",
        etag=f"CASE WHEN n % 10 = 0 THEN '' ELSE '\"' || (n % {FEEDS}) || '-0-0123456789abcdef\"' END",
    )


@contextmanager
def _command(database: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    with tempfile.TemporaryDirectory() as home:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": home,
            "HEADWATER_DATABASE_URL": database,
            "HEADWATER_ALLOW_HOSTS": "127.0.0.0/8",
            "HEADWATER_LOG_LEVEL": "warning",
            "HEADWATER_LANGUAGE": "en",
            "HEADWATER_PORT": "0",
            "COLLECTOR_CONCURRENCY": str(AT_ONCE),
            "PYTHONUNBUFFERED": "1",
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "headwater", *arguments],
            env=environment,
            cwd=home,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()


def _count_visited(store: Store) -> int:
    with store.reading() as connection:
        return int(
            connection.exec_driver_sql(
                "SELECT count(*) FROM sources WHERE last_fetched_at > 1.0"
            ).scalar_one()
        )


def _collect(database: str, fleet: int, processes: int) -> tuple[float, float]:
    """Visits a second, and CPU seconds of all processes per 1,000 visits, starting included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with (
        Store.open(database) as store,
        _command(database, "collect", "--loop", "--json", "--processes", str(processes)) as process,
    ):
        while not (first := _count_visited(store)):
            time.sleep(0.1)
        began = time.monotonic()
        while (now := _count_visited(store)) < 0.95 * fleet:
            time.sleep(0.2)
        pace = (now - first) / (time.monotonic() - began)
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=120)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return pace, 1000 * spent / orjson.loads(said)["visits"]


def measure_processes(
    options: argparse.Namespace, server_url: str, directory: Path, verdict: Verdict
) -> None:
    print(f"\nVisits a second, {options.crowd:,} sources each on its own host, {os.cpu_count()} cores")
    with serving(FEEDS, ITEMS) as port:
        for kind in options.databases:
            paces = []
            for processes in (1, 2):
                with new_database(kind, directory, server_url) as database:
                    with Store.open(database) as store:
                        _fill(store, port, options.crowd)
                    pace, cpu = _collect(database, options.crowd, processes)
                paces.append(pace)
                print(f"  {kind:12}{processes} {pace:8.0f} visits/s   {cpu:6.3f} CPU s per 1,000 visits")
            verdict.tell(f"{kind}: visits a second by two processes, times one's", paces[1] / paces[0], "×")
        _measure_dashboard(options, server_url, directory, verdict, port)


def _measure_dashboard(
    options: argparse.Namespace, server_url: str, directory: Path, verdict: Verdict, port: int
) -> None:
    print("\nMilliseconds until the dashboard's first page is there: median, 99 of 100")
    for processes in (0, 1):
        with new_database("SQLite", directory, server_url) as database, Store.open(database) as store:
            _fill(store, port, options.crowd)
            _set_due(store, time.time() + 86_400)
            with _command(database, "serve", "--processes", str(processes)) as process:
                assert process.stdout is not None
                found = re.search(r"http://\S+", process.stdout.readline())
                assert found is not None
                time.sleep(3)  # for the collector to have started
                idle = _answer_times(found[0])
                _set_due(store, 1.0)
                while not _count_visited(store):
                    time.sleep(0.1)
                busy = _answer_times(found[0])
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=120)
        for name, (middle, worst) in (("idle", idle), ("collecting", busy)):
            print(f"  {processes} beside, {name:12}{middle:8.1f}{worst:8.1f}")
        most = MOST_OF_IDLE if processes else None
        verdict.tell(
            f"the dashboard's p99 while {processes or 'it'} collects, times idle",
            busy[1] / idle[1],
            "×",
            most=most,
        )


def _set_due(store: Store, at: float) -> None:
    with store.writing() as connection:
        connection.exec_driver_sql(f"UPDATE sources SET due_at = {at}, next_fetch_at = {at}")


def _answer_times(address: str) -> tuple[float, float]:
    times = []
    for _ in range(REQUESTS):
        began = time.perf_counter()
        with urllib.request.urlopen(address) as answer:  # noqa: S310 - our own
            answer.read()
        times.append(1000 * (time.perf_counter() - began))
        time.sleep(0.02)
    return statistics.median(times), statistics.quantiles(times, n=100)[98]

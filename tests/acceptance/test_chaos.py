"""Collectors killed, stopped past their leases and cut off from the database: nothing is lost and nothing doubled.

What happens to whom comes from a seed that is printed; when exactly it hits is the machine's affair.
"""

import contextlib
import functools
import signal
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Literal

import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError

from headwater.errors import StoreError
from headwater.sources.adding import add_unvisited, read_new_source
from headwater.store.core.database import Store
from headwater.store.core.tables import collection_records, item_versions, items, source_stats, sources
from tests.collect.test_engine import rss
from tests.command import Headwater
from tests.databases import PrivatePostgres, copy_sqlite, postgres_database
from tests.leases import leases
from tests.origin import Answer, Origin, Received

pytestmark = pytest.mark.slow

SOURCES = 120
VISIT_SECONDS = 3.0
LEASE_SECONDS = VISIT_SECONDS + 5.0
CONCURRENCY = 10
SLOW_VISITS = 5  # that may be under way beside those, once they have taken a second, as after a freeze
CHAOS_SECONDS = 25.0
LEAST_KILLS = 5
SEED = 20_261_115


class Publisher:
    """Sources that go on publishing while the collectors suffer. Every feed shows all that it ever had."""

    def __init__(self, origin: Origin, rng: Random) -> None:
        self.origin = origin
        self.counts = [1] * SOURCES
        self._rng = rng
        for number in range(SOURCES):
            origin.route(f"/{number}", self._answering(number))

    def _answering(self, number: int) -> Callable[[Received], Answer]:
        delays = Random(number)

        def answer(request: Received) -> Answer:
            count = self.counts[number]
            return Answer(rss(*range(count)), etag=f'"{count}"', delay=delays.uniform(0.1, 0.6))

        return answer

    def publish(self) -> None:
        for number in self._rng.sample(range(SOURCES), SOURCES // 10):
            self.counts[number] += 1

    def published(self) -> set[tuple[str, str]]:
        return {
            (self.origin.url(f"/{number}"), str(each))
            for number, count in enumerate(self.counts)
            for each in range(count)
        }


class Collectors:
    """Processes of `headwater collect --loop` on one database, and what is done to them."""

    def __init__(self, command: Headwater, count: int, rng: Random) -> None:
        self.kills = self.stops = 0
        self._command = command
        self._rng = rng
        self._logs: dict[int, Path] = {}
        self._stopped: tuple[subprocess.Popen[bytes], float] | None = None
        self._stand_in: subprocess.Popen[bytes] | None = None
        self.running = [self._start() for _ in range(count)]

    def _start(self) -> subprocess.Popen[bytes]:
        path = self._command.directory / f"collector-{len(self._logs) + 1}.log"
        with path.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "headwater", "collect", "--loop"],
                cwd=self._command.directory,
                env=self._command.environment,
                stdout=log,
                stderr=log,
            )
        self._logs[process.pid] = path
        return process

    def replace_unstarted(self) -> None:
        """Start those again that found no database when they began, as a service manager does; no other may end."""
        for place, process in enumerate(self.running):
            if process.poll() is not None:
                log = self._logs[process.pid].read_text()
                assert log.startswith("error: the database") and log.count("\n") == 1, self.logs()[-3000:]
                self.running[place] = self._start()
                if process is self._stand_in:
                    self._stand_in = self.running[place]

    def kill_one(self) -> None:
        victim = self._rng.choice(self.running)
        if self._stopped is not None and victim is self._stopped[0]:
            return
        self._kill(victim)
        place = self.running.index(victim)
        self.running[place] = self._start()
        if victim is self._stand_in:
            self._stand_in = self.running[place]

    def _kill(self, victim: subprocess.Popen[bytes]) -> None:
        victim.kill()
        victim.wait()
        self.kills += 1

    def stop_one(self) -> None:
        """Let one freeze, so that others take over what it holds."""
        if self._stopped is None:
            victim = self._rng.choice(self.running)
            victim.send_signal(signal.SIGSTOP)
            self._stopped = victim, time.monotonic()
            self.stops += 1
            if len(self.running) == 1:  # another must be there to take over
                self._stand_in = self._start()
                self.running.append(self._stand_in)

    def wake_up(self, *, now: bool = False) -> None:
        """Let it go on once its leases have passed on."""
        if self._stopped is not None and (now or time.monotonic() > self._stopped[1] + LEASE_SECONDS + 0.5):
            self._stopped[0].send_signal(signal.SIGCONT)
            self._stopped = None
        elif self._stopped is None and self._stand_in is not None:
            # Only now: when the frozen one woke up, its sources were in other hands.
            self._kill(self._stand_in)
            self.running.remove(self._stand_in)
            self._stand_in = None

    @property
    def has_stopped(self) -> bool:
        return self._stopped is not None

    def end(self) -> list[int]:
        for process in self.running:
            process.terminate()
        return [process.wait(40) for process in self.running]

    def kill_all(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()

    def logs(self) -> str:
        return "\n".join(f"{path.name}:\n{path.read_text()}" for path in self._logs.values())


def add_sources(store: Store, publisher: Publisher) -> None:
    with store.writing() as connection:
        for number in range(SOURCES):
            config = {"fetch_interval_minutes": 0.03}
            wanted = read_new_source(publisher.origin.url(f"/{number}"), "rss", config, f"Source {number}")
            add_unvisited(connection, wanted, time.time())


def make_trouble(
    collectors: Collectors, publisher: Publisher, rng: Random, restarts: Sequence[Callable[[], None]] = ()
) -> None:
    """For CHAOS_SECONDS: freeze a process whenever none is frozen, kill now and then, restart the database evenly.

    On a slow machine the time may pass with too little trouble: then it goes on until there was enough.
    """
    start = time.monotonic()
    end = start + CHAOS_SECONDS
    waiting = deque(
        (start + CHAOS_SECONDS * (place + 1) / (len(restarts) + 1), restart)
        for place, restart in enumerate(restarts)
    )
    while time.monotonic() < end or waiting or collectors.kills < LEAST_KILLS:
        time.sleep(rng.uniform(0.3, 1.2))
        collectors.wake_up()
        collectors.replace_unstarted()
        publisher.publish()
        if waiting and time.monotonic() > waiting[0][0]:
            waiting.popleft()[1]()
        if rng.random() < 0.4:
            collectors.kill_one()
        elif end - time.monotonic() > LEASE_SECONDS:
            collectors.stop_one()
    while collectors.has_stopped:
        time.sleep(0.1)
        collectors.wake_up()
    collectors.replace_unstarted()
    publisher.publish()


def check(store: Store, publisher: Publisher, disturbances: int) -> None:
    """Everything once, nothing twice, no lease left behind."""
    with store.reading() as connection:
        rows = connection.execute(select(sources)).all()
        record = collection_records.c
        made = select(record.source_id, func.count()).where(record.status != "skipped")
        visits = {row[0]: row[1] for row in connection.execute(made.group_by(record.source_id))}
        found = select(sources.c.url, items.c.external_id).join_from(items, sources)
        stored = Counter((row[0], row[1]) for row in connection.execute(found))
        counted_new, recorded_requests = connection.execute(
            select(func.sum(record.items_new), func.sum(record.requests))
        ).one()
        versions = connection.execute(select(func.count()).select_from(item_versions)).scalar_one()
        counts = select(source_stats.c.source_id, source_stats.c.check_count)
        checks = {int(row[0]): row[1] for row in connection.execute(counts)}
    in_flight = leases(store)
    assert set(stored) == publisher.published(), "every item is stored, and no other"
    assert set(stored.values()) == {1}
    assert counted_new == len(stored), "every item was counted as new exactly once"
    assert versions == 0, "nothing was changed, so nothing may have been stored as changed"
    assert in_flight == {}
    assert all(row.last_fetched_at is not None for row in rows)
    assert {row.id: row.fetch_count for row in rows} == visits, "a visit is counted once, with its record"
    assert checks == visits

    received = Counter(request.path for request in publisher.origin.requests)
    for row in rows:
        assert received["/" + row.url.rpartition("/")[2]] >= row.fetch_count - row.fetch_error_count, (
            "no visit was made up"
        )
    unrecorded = len(publisher.origin.requests) - recorded_requests
    # What was under way when a process was killed, froze or lost the database was asked for and not recorded.
    assert 0 <= unrecorded <= disturbances * (CONCURRENCY + SLOW_VISITS), (unrecorded, disturbances)


@contextlib.contextmanager
def collecting(tmp_path: Path, url: str, count: int, rng: Random) -> Iterator[tuple[Headwater, Collectors]]:
    command = Headwater(tmp_path, url)
    command.environment |= {
        "HEADWATER_VISIT_TIMEOUT_SECONDS": f"{VISIT_SECONDS:g}",
        "COLLECTOR_CONCURRENCY": str(CONCURRENCY),
        "HEADWATER_SLOW_VISITS": str(SLOW_VISITS),
        "HEADWATER_HOST_CONCURRENCY": "100",
        "HEADWATER_POLICY": "interval",
    }
    collectors = Collectors(command, count, rng)
    try:
        yield command, collectors
    except BaseException:
        print(collectors.logs()[-10_000:])
        raise
    finally:
        collectors.wake_up(now=True)
        collectors.kill_all()


def finish(command: Headwater, collectors: Collectors) -> None:
    """Let the leases of the dead expire while the living work, end these, and visit everything once more."""
    time.sleep(LEASE_SECONDS + 0.5)
    collectors.replace_unstarted()
    # On a busy machine one may not have begun yet, and then there is nothing to end politely.
    assert set(collectors.end()) <= {0, -signal.SIGTERM}, collectors.logs()[-3000:]
    command.ok("collect", "--all", HEADWATER_LOG_LEVEL="error")


@pytest.mark.timeout(180)
def test_three_collectors_survive_kills_freezes_and_restarts_of_postgresql(
    tmp_path: Path, origin: Origin
) -> None:
    print(f"seed {SEED}")
    rng = Random(SEED)
    publisher = Publisher(origin, Random(SEED + 1))
    with PrivatePostgres() as server, postgres_database(server.url, "chaos") as url:
        with Store.open(url) as store:
            add_sources(store, publisher)
        with collecting(tmp_path, url, 3, rng) as (command, collectors):
            modes: tuple[Literal["fast", "immediate"], ...] = ("fast", "immediate", "fast")
            restarts = [functools.partial(server.restart, mode, 0.5) for mode in modes]
            make_trouble(collectors, publisher, rng, restarts)
            finish(command, collectors)
            assert collectors.kills >= LEAST_KILLS and collectors.stops >= 2
            with Store.open(url) as store:
                check(store, publisher, collectors.kills + collectors.stops + 3 * len(restarts))


@pytest.mark.timeout(180)
def test_a_collector_on_sqlite_survives_kills_and_freezes(
    tmp_path: Path, sqlite_template: Path, origin: Origin
) -> None:
    print(f"seed {SEED}")
    rng = Random(SEED)
    publisher = Publisher(origin, Random(SEED + 1))
    url = copy_sqlite(sqlite_template, tmp_path / "headwater.db")
    with Store.open(url) as store:
        add_sources(store, publisher)
    with collecting(tmp_path, url, 1, rng) as (command, collectors):
        make_trouble(collectors, publisher, rng)
        finish(command, collectors)
        assert collectors.kills >= LEAST_KILLS and collectors.stops >= 1
        with Store.open(url) as store:
            check(store, publisher, collectors.kills + collectors.stops)


def test_who_wakes_up_while_another_has_the_lease_changes_nothing(
    tmp_path: Path, database_url: str, origin: Origin
) -> None:
    """The fence itself: it is the number of the lease that counts, not that there is one."""
    late, other = Answer(rss(0), delay=60.0), Answer(rss(0, 1), delay=15.0)
    origin.route("/feed", [late, other])
    command = Headwater(tmp_path, database_url)
    command.ok("source", "add", origin.url("/feed"), "--no-check")

    def asked(times: int) -> None:
        deadline = time.monotonic() + 60
        while len(origin.requests) < times:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def leased() -> bool:
        with Store.open(database_url) as store:
            return max(leases(store).values(), default=0.0) > time.time()

    frozen = command.start("collect", HEADWATER_VISIT_TIMEOUT_SECONDS=f"{VISIT_SECONDS:g}")

    def freeze() -> None:
        """Not in the middle of a transaction, in which it would keep all others from writing."""
        while True:
            frozen.send_signal(signal.SIGSTOP)
            with contextlib.suppress(StoreError, DBAPIError), Store.open(database_url) as store:
                with store.writing() as connection:
                    if not store.is_sqlite:
                        connection.exec_driver_sql("SET LOCAL lock_timeout = '1s'")
                    connection.execute(sources.update().values(folder=sources.c.folder))
                return
            frozen.send_signal(signal.SIGCONT)
            time.sleep(0.05)

    asked(1)
    try:
        freeze()
        while leased():
            time.sleep(0.2)
        another = command.start("collect", HEADWATER_VISIT_TIMEOUT_SECONDS="60")
        asked(2)
    finally:
        frozen.send_signal(signal.SIGCONT)
    frozen.communicate(timeout=60)  # it comes to settle its visit, while the other one is still at it
    another.communicate(timeout=90)
    with Store.open(database_url) as store, store.reading() as connection:
        row = connection.execute(select(sources)).one()
        count = connection.execute(select(func.count()).select_from(collection_records)).scalar_one()
        stored = set(connection.execute(select(items.c.external_id)).scalars())
        in_flight = leases(store)
    assert (row.fetch_count, row.fetch_error_count, count) == (1, 0, 1)
    assert stored == {"0", "1"}
    assert in_flight == {}

"""One soak: publisher, collectors, workers and API on each database, faults all the while, and the reckoning."""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

from headwater.store.core.database import Store
from tests.databases import PrivatePostgres, postgres_database
from tests.soak.fleet import Fleet
from tests.soak.publishing import Publishing
from tests.soak.reckoning import Report, is_settled, reckon

DATABASES = ("sqlite", "postgresql")
SETTLING_SECONDS = 300.0  # at most: on a machine that does nothing else it takes ten
# A visit that a busy machine cuts off makes its source rest for a quarter of an hour: here a watcher looks after that,
# so that nothing leaves a feed (publishing.WINDOW_SECONDS) before it is seen.
REFRESH_SECONDS = 60.0
# However long it is: in the second half of its life a process has loaded and prepared what it will need.
MOST_MEGABYTES_MORE, MOST_FILES_MORE = 8.0, 8.0
QUIET_SHARE = 0.1  # at the end no process is disturbed
WARMING_SHARE = 0.25  # at the beginning every process is


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
        for fleet in fleets:
            if not fleet.wait_until(fleet.has_seen_everything, SETTLING_SECONDS):
                report.findings.append(
                    f"{fleet.name}: not every source was visited within {SETTLING_SECONDS:g} s"
                )
        publishing.count_from_now()
        tell("every source has been visited; the trouble begins")
        _make_trouble(seconds, fleets, restarts, rng, tell)
        publishing.end()
        published = publishing.published()
        tell(f"published {len(published.due)} items; waiting for the rest to be collected and delivered")
        for fleet in fleets:
            fleet.wake_up()
            fleet.refresh_all()
        for fleet in fleets:
            with Store.open(fleet.url) as store:
                fleet.wait_until(fleet.has_outlived_the_killed, SETTLING_SECONDS)
                fleet.wait_until(lambda store=store: is_settled(store, published), SETTLING_SECONDS)  # type: ignore[misc]
                fleet.end()
                tell(f"{fleet.name} has settled and ended")
                reckon(fleet, store, publishing, report)
        report.lines.append(f"{publishing.requests} requests answered by the publisher")
        for fleet in fleets:
            report.lines += fleet.meter.table()
            report.findings += fleet.meter.leaks(MOST_MEGABYTES_MORE, MOST_FILES_MORE) + fleet.findings
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
    next_refresh = start + REFRESH_SECONDS
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
        if now > next_refresh:
            for fleet in fleets:
                fleet.refresh_all()
            next_refresh = now + REFRESH_SECONDS
        if now > next_word:
            done = ", ".join(f"{each.name} {each.kills} killed, {each.freezes} frozen" for each in fleets)
            tell(f"{now - start:.0f} s: {done}")
            next_word = now + 30.0
        time.sleep(0.5)

"""Headwater's processes on one database: collectors, workers and the API, and what is done to them."""

import json
import math
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

from sqlalchemy import func, select

from headwater.collect.engine import MIN_LEASE_MARGIN_SECONDS
from headwater.demo.run import config_of, kind_of
from headwater.errors import StoreError
from headwater.pipeline.advance import LEASE_SECONDS as RUN_LEASE_SECONDS
from headwater.sources.adding import add_unvisited, read_new_source
from headwater.store.collecting.sources import request_refresh
from headwater.store.core.database import Store
from headwater.store.core.tables import sources
from tests.command import Headwater
from tests.soak.measuring import Meter
from tests.soak.publishing import Publishing

VISIT_SECONDS: Final = (
    20.0  # long, so that a busy machine does not cut visits off, which would make their sources rest
)
LEASE_SECONDS: Final = VISIT_SECONDS + MIN_LEASE_MARGIN_SECONDS
TAKING_OVER_SECONDS: Final = 5.0  # what a lease has passed for is due at once
FROZEN_SECONDS: Final = max(LEASE_SECONDS, RUN_LEASE_SECONDS) + 2.0  # past every lease
STARTING_SECONDS: Final = 120.0
EVERY_SECONDS: Final = 3.0  # between visits to a source
_EXPENDABLE: Final = ("collector 2", "worker 2")
_COMMANDS: Final = {
    "collector 1": ("collect", "--loop"),
    "collector 2": ("collect", "--loop"),
    "worker 1": ("worker", "--concurrency", "5"),
    "worker 2": ("worker", "--concurrency", "5"),
    "API": ("serve",),
}


_ASKED: Final = (
    "/",
    "/items",
    "/runs",
    "/sources",
    "/sources/{number}",
    "/api/collector/status?limit=100",
    "/api/raw-items",
    "/api/sources",
    "/api/feeds/{number}/refresh",
    "/metrics",
)


class Fleet:
    """Five processes that are started again whenever they were killed, and only then."""

    def __init__(self, name: str, url: str, directory: Path, publishing: Publishing, rng: Random) -> None:
        self.name = name
        self.url = url
        self.meter = Meter()
        self.findings: list[str] = []
        self.answers: Counter[str] = Counter()
        self.kills = self.freezes = 0
        self._killed_at = -math.inf
        self._publishing = publishing
        self._rng = rng
        self._directory = directory
        self._logs: list[Path] = []
        self._log_of: dict[int, Path] = {}
        self._started_at: dict[str, float] = {}
        self._frozen: tuple[str, float] | None = None
        self._port = _free_port()
        self._command = Headwater(directory, url)
        self._command.environment |= {
            "HEADWATER_VISIT_TIMEOUT_SECONDS": f"{VISIT_SECONDS:g}",
            "HEADWATER_HOST_CONCURRENCY": "20",
            "HEADWATER_POLICY": "interval",
            "HEADWATER_PIPELINE_CONCURRENCY": "0",  # that is for the workers
            "HEADWATER_PORT": str(self._port),
            "COLLECTOR_TICK": "1",
        }
        self._set_up()
        self.processes = {process: self._start(process) for process in _COMMANDS}
        self._asking = threading.Event()
        self._caller = threading.Thread(target=self._ask, daemon=True)
        self._caller.start()

    def _set_up(self) -> None:
        with Store.open(self.url) as store, store.writing() as connection:
            for source in self._publishing.sources:
                config = config_of(source, EVERY_SECONDS / 60)
                wanted = read_new_source(
                    self._publishing.base + source.path, kind_of(source), config, source.name
                )
                add_unvisited(connection, wanted, time.time())
        template = {
            "name": "soak",
            "steps": [
                {"step_type": "filter_content", "config": {"exclude_keywords": ["no item says this"]}},
                {
                    "step_type": "publish_content",
                    "config": {"target": "webhook", "url": f"{self._publishing.base}/hook/{self.name}"},
                    "retries": 50,
                },
            ],
        }
        path = self._directory / "soak.json"
        path.write_text(json.dumps(template))
        self._command.ok("pipeline", "add", str(path))
        numbers = [str(number) for number in range(1, len(self._publishing.sources) + 1)]
        self._command.ok("pipeline", "attach", "soak", *numbers)
        self._key = self._command.json("key", "add", "soak", "--scope", "admin")["key"]

    def _start(self, process: str) -> "subprocess.Popen[bytes]":
        path = self._directory / f"{process.replace(' ', '-')}-{len(self._logs)}.log"
        self._logs.append(path)
        with path.open("wb") as log:
            started = subprocess.Popen(
                [sys.executable, "-m", "headwater", *_COMMANDS[process]],
                cwd=self._directory,
                env=self._command.environment,
                stdout=log,
                stderr=log,
            )
        self._log_of[started.pid] = path
        self._started_at[process] = time.monotonic()
        return started

    # -- what is done to them ---------------------------------------------------------------------------

    def trouble(self, *, spare: bool) -> None:
        """Kill or freeze one, as nothing can prevent; with `spare`, of those that are there for it."""
        victim = self._rng.choice(_EXPENDABLE if spare else tuple(_COMMANDS))
        if self._frozen is not None and self._frozen[0] == victim:
            return
        if spare and self._frozen is None and self._rng.random() < 0.3:
            self.processes[victim].send_signal(signal.SIGSTOP)
            self._frozen = victim, time.monotonic()
            self.freezes += 1
            return
        self.processes[victim].kill()
        self.processes[victim].wait()
        self.processes[victim] = self._start(victim)
        self.kills += 1
        self._killed_at = time.monotonic()

    def has_outlived_the_killed(self) -> bool:
        """Whether another process has had the time to take over what they left leased."""
        return time.monotonic() > self._killed_at + FROZEN_SECONDS + TAKING_OVER_SECONDS

    def look_after(self) -> None:
        """Measure all, wake the frozen process once its leases have passed on, notice unexpected ends."""
        if self._frozen is not None and time.monotonic() > self._frozen[1] + FROZEN_SECONDS:
            self.wake_up()
        for name, process in self.processes.items():
            if process.poll() is None:
                if name not in _EXPENDABLE:
                    self.meter.sample(f"{self.name}: {name}", process.pid)
                continue
            said = self._log_of[process.pid].read_text(errors="replace")
            self.findings.append(f"{self.name}: {name} ended with {process.returncode}: {said[-400:]}")
            self.processes[name] = self._start(name)

    def has_seen_everything(self) -> bool:
        """Every source has been visited once."""
        with Store.open(self.url) as store, store.reading() as connection:
            unseen = select(func.count()).select_from(sources).where(sources.c.last_fetched_at.is_(None))
            return connection.execute(unseen).scalar_one() == 0

    def refresh_all(self) -> None:
        """Everything is due now, whatever its plan says."""
        with suppress(StoreError), Store.open(self.url) as store, store.writing() as connection:
            if (
                not store.is_sqlite
            ):  # a process frozen in a transaction is woken by us: we must not wait for it
                connection.exec_driver_sql("SET LOCAL lock_timeout = '5s'")
            request_refresh(connection, None, time.time())

    def wake_up(self) -> None:
        if self._frozen is not None:
            self.processes[self._frozen[0]].send_signal(signal.SIGCONT)
            self._frozen = None

    def wait_until(self, done: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if done():
                return True
            self.look_after()
            time.sleep(0.5)
        return done()

    def end(self) -> None:
        """Stop every process politely, and read what they logged."""
        self.wake_up()
        self._asking.set()
        self._caller.join(15)
        for process in self.processes.values():
            process.terminate()
        for name, process in self.processes.items():
            code = process.wait(60)
            is_new = time.monotonic() - self._started_at[name] < STARTING_SECONDS
            if code != 0 and not (
                is_new and code == -signal.SIGTERM
            ):  # it had not begun, and has nothing to end
                said = self._log_of[process.pid].read_text(errors="replace")
                self.findings.append(
                    f"{self.name}: {name} ended with {code} when told to stop: {said[-400:]}"
                )
        for path in self._logs:
            if "Traceback" in (text := path.read_text(errors="replace")):
                self.findings.append(f"{self.name}: {path.name}: {text[text.index('Traceback') :][:1500]}")
        for status, count in self.answers.items():
            if status.startswith("5") and status != "503":
                self.findings.append(f"{self.name}: the API answered {status} {count} times")

    def kill_all(self) -> None:
        self._asking.set()
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()

    # -- the API's load ---------------------------------------------------------------------------------

    def _ask(self) -> None:
        opener = build_opener(ProxyHandler({}))
        while not self._asking.wait(0.25):
            number = self._rng.randint(1, len(self._publishing.sources))
            path = self._rng.choice(_ASKED).format(number=number)
            body = b"" if path.endswith("/refresh") else None
            request = Request(
                f"http://127.0.0.1:{self._port}{path}", body, {"Authorization": f"Bearer {self._key}"}
            )
            try:
                with opener.open(request, timeout=20) as answer:
                    answer.read()
                    self.answers[str(answer.status)] += 1
            except HTTPError as error:
                self.answers[str(error.code)] += 1
                error.close()
            except (URLError, OSError):
                self.answers["not there"] += 1


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

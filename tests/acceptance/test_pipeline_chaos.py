"""Workers killed and frozen at random moments: every run ends, and no committed step happens twice."""

import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import func, select

from headwater.store.core.database import Store
from headwater.store.core.tables import pipeline_executions, pipeline_steps
from headwater.store.pipelines.runs import read_steps
from tests.command import Headwater
from tests.origin import Answer, Origin, Received
from tests.pipeline.making import make_runs, read_run, step

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("step_plugin")]
RUNS = 200
WORKERS = 3
PAST_THE_LEASE_SECONDS = 14.0


def unfinished(store: Store) -> int:
    query = (
        select(func.count())
        .select_from(pipeline_executions)
        .where(pipeline_executions.c.completed_at.is_(None))
    )
    with store.reading() as connection:
        return connection.execute(query).scalar_one()


def completed_steps(store: Store) -> int:
    query = select(func.count()).select_from(pipeline_steps).where(pipeline_steps.c.status == "completed")
    with store.reading() as connection:
        return connection.execute(query).scalar_one()


def worker_in(tmp_path: Path, database_url: str, step_plugin: str) -> Headwater:
    command = Headwater(tmp_path, database_url)
    command.environment["PYTHONPATH"] = step_plugin
    return command


class Fleet:
    """Workers whose output goes nowhere, so that no full pipe ever holds one up."""

    def __init__(self, command: Headwater, count: int) -> None:
        self._command = command
        self.workers = [self.start() for _ in range(count)]

    def start(self) -> "subprocess.Popen[bytes]":
        import sys

        return subprocess.Popen(
            [sys.executable, "-m", "headwater", "worker", "--concurrency", "4"],
            cwd=self._command.directory,
            env=self._command.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def replace(self, number: int) -> None:
        """Kill one as nothing can prevent, and start another in its place."""
        self.workers[number].kill()
        self.workers[number].wait()
        self.workers[number] = self.start()

    def end(self) -> None:
        for worker in self.workers:
            worker.send_signal(signal.SIGCONT)
            worker.kill()
            worker.wait()


@contextmanager
def fleet(command: Headwater, count: int) -> Iterator[Fleet]:
    workers = Fleet(command, count)
    try:
        yield workers
    finally:
        workers.end()


@pytest.mark.timeout(600)
def test_chaos(tmp_path: Path, database_url: str, step_plugin: str, origin: Origin, rng: Random) -> None:
    keys: Counter[str] = Counter()
    lock = threading.Lock()

    def receive(request: Received) -> Answer:
        with lock:
            keys[request.target.partition("key=")[2]] += 1
        return Answer(b"ok")

    origin.route("/hook", receive)
    with Store.open(database_url) as store, ExitStack() as stack:
        count = 1 if store.is_sqlite else WORKERS
        run_ids = make_runs(
            store,
            RUNS,
            step("note_test", seconds=0.1 * count),
            step("note_test", seconds=0.2 * count),
            step("post_test", url=origin.url("/hook"), retries=5),
            step("note_test", seconds=0.1 * count),
        )
        workers = stack.enter_context(fleet(worker_in(tmp_path, database_url, step_plugin), count))
        frozen: tuple[int, float] | None = None
        kills = freezes = 0
        deadline = time.monotonic() + 500
        next_at = time.monotonic()
        done_before = 0
        while unfinished(store) and time.monotonic() < deadline:
            time.sleep(0.1)
            now = time.monotonic()
            if frozen is not None:
                if now < frozen[1]:
                    if count == 1:
                        continue
                else:
                    workers.workers[frozen[0]].send_signal(signal.SIGCONT)
                    frozen = None
            done = completed_steps(store)
            if now < next_at or done < done_before + 60:
                continue  # blows are to hit workers at work, not while they start
            number = rng.randrange(count)
            if frozen is not None and number == frozen[0]:
                continue
            next_at, done_before = now + rng.uniform(1.5, 4), done
            if frozen is None and freezes < 2 and kills > freezes:
                workers.workers[number].send_signal(signal.SIGSTOP)
                frozen = (number, now + PAST_THE_LEASE_SECONDS)
                freezes += 1
            else:
                workers.replace(number)
                kills += 1
        assert unfinished(store) == 0, "every run ends"
        assert kills >= 2
        assert freezes >= 1
        with store.reading() as connection:
            statuses = Counter(connection.execute(select(pipeline_executions.c.status)).scalars())
            steps = read_steps(connection, run_ids)
            rows = connection.execute(select(func.count()).select_from(pipeline_steps)).scalar_one()
    assert statuses == {"completed": RUNS}
    assert rows == 4 * RUNS
    expected = set()
    for its_steps in steps.values():
        assert [each.status for each in its_steps] == ["completed"] * 4
        times = [at for each in its_steps for at in (each.started_at or 0.0, each.completed_at or 0.0)]
        assert times == sorted(times), "one after the other"
        first = its_steps[0].output
        assert first is not None
        expected.add(first["key"].replace("-step-1", "-step-3"))
    assert set(keys) == expected, "the receiver has seen every key, and can tell what it has seen twice"


@pytest.mark.timeout(180)
def test_a_run_interrupted_on_one_worker_goes_on_on_another(
    tmp_path: Path, database_url: str, step_plugin: str
) -> None:
    with Store.open(database_url) as store:
        [run_id] = make_runs(store, 1, step("note_test"), step("note_test", seconds=3))
        command = worker_in(tmp_path, database_url, step_plugin)
        with fleet(command, 1) as first:
            while read_run(store, run_id).current_step_index == 0:
                time.sleep(0.05)
            with fleet(command, 1):
                if not store.is_sqlite:  # it is there before the other dies
                    time.sleep(2)
                first.workers[0].kill()
                first.workers[0].wait()
                killed_at = time.time()
                while read_run(store, run_id).completed_at is None:
                    time.sleep(0.1)
                run = read_run(store, run_id)
    assert run.status == "completed"
    if run.steps[1].attempts > 1:
        assert (run.steps[1].started_at or 0) - killed_at < 30
    assert run.steps[1].crashes == 0, "once it has ended well"
    assert run.steps[0].attempts == 1


@pytest.mark.timeout(240)
def test_a_step_that_kills_its_workers_fails(tmp_path: Path, database_url: str, step_plugin: str) -> None:
    marks = tmp_path / "marks"
    with Store.open(database_url) as store:
        [run_id] = make_runs(store, 1, step("deadly_test", marks=str(marks)))
        command = worker_in(tmp_path, database_url, step_plugin)
        with fleet(command, 1) as workers:
            while read_run(store, run_id).completed_at is None:
                if workers.workers[0].poll() is not None:
                    workers.workers[0] = workers.start()
                time.sleep(0.1)
        run = read_run(store, run_id)
    assert (run.status, len(marks.read_text().split())) == ("failed", 3)
    assert run.steps[0].error_message == "its worker died 3 times while it ran"


@pytest.mark.timeout(120)
def test_a_deploy_fails_nothing(tmp_path: Path, database_url: str, step_plugin: str) -> None:
    with Store.open(database_url) as store:
        run_ids = make_runs(store, 12, step("note_test", seconds=1.5), step("note_test", seconds=1.5))
        command = worker_in(tmp_path, database_url, step_plugin)
        command.environment["HEADWATER_PIPELINE_CONCURRENCY"] = "4"
        old = command.start("worker")
        while not any(read_run(store, run_id).status == "running" for run_id in run_ids):
            time.sleep(0.05)
        old.send_signal(signal.SIGTERM)
        began = time.monotonic()
        _, err = old.communicate(timeout=40)
        assert (old.returncode, err) == (0, "")
        assert time.monotonic() - began < 30
        statuses = Counter(each.status for run_id in run_ids for each in read_run(store, run_id).steps)
        assert set(statuses) == {"completed", "pending"}, statuses
        with fleet(command, 1):
            while unfinished(store):
                time.sleep(0.1)
        steps = [each for run_id in run_ids for each in read_run(store, run_id).steps]
    assert {(each.status, each.attempts, each.crashes) for each in steps} == {("completed", 1, 0)}

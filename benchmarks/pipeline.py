"""Runs of four steps a second, beside the queues people would use instead: `python -m benchmarks.pipeline`.

Trivial runs: on PostgreSQL against plain Procrastinate, four jobs each of which defers the next; on SQLite against
DBOS, a workflow of four steps. Runs with results, on both against DBOS: each step makes something that is kept (a full
text, a summary, a translation, a score), DBOS as the step's output, we with the item as well, where people find it.
Each in a separate process with the same number of runs and the same concurrency, in turns within one run; what waits
in a queue is enqueued before the clock starts. Ratios are what to read: the absolute figures are this machine's.
"""

import argparse
import asyncio
import contextlib
import logging
import multiprocessing
import multiprocessing.connection
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from tests.databases import postgres_database, postgres_server
from tests.pipeline.making import make_runs, make_settings, step
from tests.plugins import install

from benchmarks.verdict import Verdict

STEPS = 4
AT_LEAST = {"plain Procrastinate": 0.8, "DBOS": 2.0, "DBOS, with results": 1.0}
TEXT = "<p>The river rose for three days, and the harbour of the old town is closed until Friday.</p>" * 20
MADE: tuple[dict[str, Any], ...] = (
    {"kind": "full_text", "body": TEXT, "format": "html"},
    {"kind": "summary", "body": TEXT[:400]},
    {"kind": "translation", "name": "zh", "body": "河水上涨，港口关闭。" * 20, "language": "zh"},
    {"kind": "score", "data": {"score": 8.0, "reason": "It concerns the river."}},
)


def ours(database_url: str, directory: Path, runs: int, concurrency: int) -> float:
    """Seconds for our worker."""
    return _work(database_url, directory, runs, concurrency, [step("note_test")] * STEPS)


def ours_with_results(database_url: str, directory: Path, runs: int, concurrency: int) -> float:
    """The same, of steps that make results."""
    steps = [step("make_test", results=[made]) for made in MADE]
    return _work(database_url, directory, runs, concurrency, steps)


def _work(
    database_url: str, directory: Path, runs: int, concurrency: int, steps: list[dict[str, Any]]
) -> float:
    from headwater.pipeline.worker import Worker
    from headwater.store.core.database import Store
    from headwater.store.core.tables import pipeline_executions

    sys.path.insert(0, str(directory / "plugin"))
    install(directory / "plugin")
    unfinished = (
        select(func.count())
        .select_from(pipeline_executions)
        .where(pipeline_executions.c.status != "completed")
    )
    with Store.open(database_url) as store:
        make_runs(store, runs, *steps)

        async def work() -> float:
            worker = Worker(store, make_settings(directory), None, concurrency=concurrency)
            began = time.perf_counter()
            working = asyncio.create_task(worker.run())
            while worker.tally.completed < runs:  # noqa: ASYNC110 - no other contender is to pay for an event
                await asyncio.sleep(0.01)
            seconds = time.perf_counter() - began
            worker.stop()
            await working
            return seconds

        seconds = asyncio.run(work())
        with store.reading() as connection:
            assert connection.execute(unfinished).scalar_one() == 0
    return seconds


def plain_procrastinate(database_url: str, directory: Path, runs: int, concurrency: int) -> float:
    """Seconds for Procrastinate's own worker, whose jobs defer the next."""
    import procrastinate

    logging.getLogger("procrastinate").setLevel(logging.WARNING)
    app = procrastinate.App(
        connector=procrastinate.PsycopgConnector(conninfo=database_url, min_size=1, max_size=4)
    )
    done = 0

    @app.task(name="advance")
    async def advance(run_id: int, index: int) -> None:
        nonlocal done
        if index + 1 < STEPS:
            await advance.defer_async(run_id=run_id, index=index + 1)
        else:
            done += 1

    async def work() -> float:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()
            await advance.batch_defer_async(*(dict[str, Any](run_id=n, index=0) for n in range(runs)))
            began = time.perf_counter()
            working = asyncio.create_task(
                app.run_worker_async(
                    concurrency=concurrency, install_signal_handlers=False, delete_jobs="always"
                )
            )
            while done < runs:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            seconds = time.perf_counter() - began
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await working
            return seconds

    return asyncio.run(work())


def dbos(database_url: str, directory: Path, runs: int, concurrency: int) -> float:
    """Seconds for DBOS workflows called directly, so many at once: its fastest way, with no queue to wait in."""
    return _work_of_dbos(database_url, runs, concurrency, list(range(STEPS)))


def dbos_with_results(database_url: str, directory: Path, runs: int, concurrency: int) -> float:
    """The same, of steps whose outputs are what ours make."""
    return _work_of_dbos(database_url, runs, concurrency, list(MADE))


def _work_of_dbos(database_url: str, runs: int, concurrency: int, outputs: list[Any]) -> float:
    warnings.simplefilter("ignore")
    from dbos import DBOS, DBOSConfig

    logging.disable(logging.CRITICAL)
    config: DBOSConfig = {
        "name": "benchmark",
        "system_database_url": database_url,
        "log_level": "CRITICAL",
    }
    DBOS(config=config)

    @DBOS.step()
    async def one_step(index: int) -> Any:
        return outputs[index]

    @DBOS.workflow()
    async def workflow() -> int:
        for index in range(STEPS):
            await one_step(index)
        return STEPS

    async def work() -> float:
        DBOS.launch()
        left = runs
        began = time.perf_counter()

        async def caller() -> None:
            nonlocal left
            while left > 0:
                left -= 1
                await workflow()

        await asyncio.gather(*(caller() for _ in range(concurrency)))
        return time.perf_counter() - began

    seconds = asyncio.run(work())
    DBOS.destroy(workflow_completion_timeout_sec=0)
    return seconds


Contestant = Callable[[str, Path, int, int], float]


def _call(
    contestant: Contestant,
    arguments: tuple[Any, ...],
    answer: multiprocessing.connection.Connection,
) -> None:
    answer.send(contestant(*arguments))


def _measure(
    contestant: Contestant, database_url: str, directory: Path, runs: int, concurrency: int
) -> float:
    """Runs a second, in a separate process."""
    directory.mkdir()
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_call, args=(contestant, (database_url, directory, runs, concurrency), there)
    )
    process.start()
    there.close()
    try:
        seconds: float = here.recv()
    finally:
        process.join(20)
        process.kill()
    return runs / seconds


def _compare(
    name: str,
    peer_name: str,
    peer: Contestant,
    mine: Contestant,
    fresh: Callable[[str], contextlib.AbstractContextManager[str]],
    options: argparse.Namespace,
    directory: Path,
    verdict: Verdict,
) -> None:
    pairs = []
    for turn in range(options.rounds):
        pair = []
        for who, contestant in (("peer", peer), ("ours", mine)):
            label = f"{name}_{turn}_{who}_{peer.__name__}"
            with fresh(label) as url:
                pair.append(_measure(contestant, url, directory / label, options.runs, options.concurrency))
        pairs.append(pair)
    theirs, our = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(one / other for other, one in pairs)
    print(f"{name:12}{peer_name:22}{theirs:10.0f}{our:10.0f}", flush=True)
    verdict.tell(f"{name}: runs a second, times {peer_name}'s", ratio, "×", least=AT_LEAST[peer_name])


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--runs", type=int, default=500)
    arguments.add_argument("--rounds", type=int, default=3, help="the median round counts")
    arguments.add_argument("--concurrency", type=int, default=10)
    arguments.add_argument("--only", choices=("trivial", "results"), help="runs of this sort alone")
    options = arguments.parse_args()
    verdict = Verdict("pipeline")
    print(f"{'':12}{'peer':22}{'theirs':>10}{'ours':>10}   (runs of {STEPS} steps a second)")
    with tempfile.TemporaryDirectory() as name, postgres_server() as server:
        directory = Path(name)

        @contextlib.contextmanager
        def sqlite_file(label: str) -> Iterator[str]:
            yield f"sqlite:///{directory / label}.db"

        def postgres(label: str) -> contextlib.AbstractContextManager[str]:
            return postgres_database(server, f"bench_{label}")

        told = (options, directory, verdict)
        if options.only != "results":
            _compare("postgresql", "plain Procrastinate", plain_procrastinate, ours, postgres, *told)
            _compare("sqlite", "DBOS", dbos, ours, sqlite_file, *told)
        if options.only != "trivial":
            for name, fresh in (("postgresql", postgres), ("sqlite", sqlite_file)):
                _compare(name, "DBOS, with results", dbos_with_results, ours_with_results, fresh, *told)
    return verdict.exit_code()


if __name__ == "__main__":
    sys.exit(main())

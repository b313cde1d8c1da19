"""Work on PostgreSQL: Procrastinate says which run waits, to any number of workers on any number of machines.

A job only says "look at this run": the run's rows are the truth, and its lease decides who works on it. A job whose
worker has died is found by Procrastinate's heartbeats and given to another; a run that has lost its job gets a new one.
"""

import asyncio
import contextlib
import logging
from functools import partial

import procrastinate
from procrastinate.exceptions import ConnectorException
from sqlalchemy.engine import URL

from headwater.errors import StoreError
from headwater.pipeline.advance import LEASE_SECONDS
from headwater.pipeline.batch import Batch
from headwater.pipeline.limits import Pool
from headwater.pipeline.worker import Worker
from headwater.store.core.database import first_line
from headwater.store.core.retry import retry_on_disconnect
from headwater.store.pipelines.jobs import ADVANCE, SCHEMA, defer_forgotten, defer_jobs
from headwater.store.pipelines.runs import ClaimedRun, Later, claim_named

log = logging.getLogger(__name__)

HOUSEKEEPING = "headwater.housekeeping"  # a queue that every worker listens to
POLL_SECONDS = 1.0  # for what sends no notification: retries and other jobs with their own time
HEARTBEAT_SECONDS = 3.0
STALLED_SECONDS = 12.0
HOUSEKEEPING_CRON = "* * * * * */5"  # every five seconds
RESTART_SECONDS = 1.0

Claims = Batch[int, ClaimedRun | Later | None]


async def run_from_queue(worker: Worker) -> None:
    """Take jobs in each of the worker's pools until it is to stop; then let what runs end."""
    logging.getLogger("procrastinate").setLevel(logging.WARNING)  # it tells of every job
    for part in ("procrastinate.utils", "procrastinate.worker", "procrastinate.worker.worker", "asyncio"):
        logging.getLogger(part).addFilter(_in_one_line)
    slots = sum(pool.slots for pool in worker.pools)
    claims: Claims = Batch(partial(_claim, worker), lambda: slots - len(worker.in_hand))
    async with asyncio.TaskGroup() as pools:
        for pool in worker.pools:
            if pool.step_types:
                app = _advancing_app(worker, pool, claims)
                pools.create_task(_run_pool(worker, app, sorted(pool.step_types), pool.slots))
        # Beside the pools, so that it never waits for a slot.
        pools.create_task(_run_pool(worker, _housekeeping_app(worker), [HOUSEKEEPING], 1))


def _in_one_line(record: logging.LogRecord) -> bool:
    """Log connection errors as one line, without a traceback.

    Nor is that a job has gone to another worker while its worker was held up: the run's own rows know whose it is.
    """
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, ConnectorException | StoreError | OSError):
        record.msg = f"{first_line(record.getMessage())}: {first_line(error.__cause__ or error)}"
        record.args, record.exc_info = (), None
    return True


async def _run_pool(worker: Worker, app: procrastinate.App, queues: list[str], slots: int) -> None:
    while not worker.stopping:
        try:
            async with app.open_async():
                await _until_stop(worker, app, queues, slots)
        except (ConnectorException, OSError) as error:
            log.warning("the queue is away: %s", error)
        # It also ends when its connection is lost.
        if not worker.stopping:
            await worker.wait_for_stop(RESTART_SECONDS)


async def _until_stop(worker: Worker, app: procrastinate.App, queues: list[str], slots: int) -> None:
    working = asyncio.create_task(
        app.run_worker_async(
            queues=queues,
            concurrency=slots,
            fetch_job_polling_interval=POLL_SECONDS,
            update_heartbeat_interval=HEARTBEAT_SECONDS,
            stalled_worker_timeout=STALLED_SECONDS,
            delete_jobs="always",  # the run's rows tell what was done
            install_signal_handlers=False,
        )
    )
    stopping = asyncio.create_task(worker.wait_for_stop(1e9))
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        working.cancel()  # which it takes as a request: jobs that run may end
        await asyncio.wait((working,))
    if not working.cancelled():
        working.result()


def _make_app(worker: Worker) -> procrastinate.App:
    return procrastinate.App(
        connector=procrastinate.PsycopgConnector(
            conninfo=_conninfo(worker.store.url),
            kwargs={"options": f"-c search_path={SCHEMA}"},
            min_size=1,
            max_size=4,
        )
    )


def _advancing_app(worker: Worker, pool: Pool, claims: "Claims") -> procrastinate.App:
    app = _make_app(worker)

    @app.task(name=ADVANCE)
    async def advance_run(run_id: int) -> None:
        if worker.stopping:
            await worker.store.write(defer_jobs, [run_id])  # for another
            return
        claimed = await claims.ask(run_id)
        if isinstance(claimed, ClaimedRun):
            await worker.work_on(claimed, pool)
        elif isinstance(claimed, Later):
            # Another worker holds it, or it waits for its turn: the next look finds out.
            await worker.store.write(defer_jobs, [run_id])

    return app


def _housekeeping_app(worker: Worker) -> procrastinate.App:
    app = _make_app(worker)

    @app.periodic(cron=HOUSEKEEPING_CRON)
    @app.task(name=HOUSEKEEPING, queue=HOUSEKEEPING, queueing_lock=HOUSEKEEPING)
    async def keep_house(timestamp: int) -> None:
        for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=STALLED_SECONDS):
            log.warning("the worker of job %s has died; another goes on with it", job.id)
            with contextlib.suppress(ConnectorException):  # it has ended meanwhile
                await app.job_manager.retry_job(job)
        await worker.store.write(defer_forgotten, worker.clock() - 2 * POLL_SECONDS)

    return app


async def _claim(worker: Worker, run_ids: list[int]) -> list[ClaimedRun | Later | None]:
    now = worker.clock()
    claim = partial(
        claim_named,
        run_ids=sorted(set(run_ids)),
        now=now,
        lease_until=now + LEASE_SECONDS,
        rates=worker.limits.rates,
    )
    claimed = await retry_on_disconnect(lambda: worker.store.write(claim), give_up=lambda: worker.stopping)
    return [claimed.pop(run_id, None) for run_id in run_ids]


def _conninfo(url: URL) -> str:
    return url.set(drivername="postgresql").render_as_string(hide_password=False)

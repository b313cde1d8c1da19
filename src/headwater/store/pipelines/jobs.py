"""Telling workers on PostgreSQL that a run waits: a Procrastinate job, deferred in the transaction that says so.

The job carries nothing but the run's number, and its queue is the run's next step type, so that a worker can
listen to some types alone. On SQLite nothing is deferred: the workers look at the runs themselves.
"""

from collections.abc import Sequence

from sqlalchemy import Connection

from headwater.store.core.bulk import is_sqlite

SCHEMA = "procrastinate"
ADVANCE = "headwater.advance"

_DEFER = f"""
SELECT {SCHEMA}.procrastinate_defer_jobs_v1(array_agg(
    ROW(next_step_type, '{ADVANCE}', 0, 'run-' || id, NULL, jsonb_build_object('run_id', id),
        CASE WHEN due_at > extract(epoch FROM clock_timestamp()) THEN to_timestamp(due_at) END
    )::{SCHEMA}.procrastinate_job_to_defer_v1 ORDER BY id))
FROM pipeline_executions WHERE id = ANY(%s::bigint[]) AND due_at IS NOT NULL HAVING count(*) > 0
"""

# A run has a job as long as it has not ended. One that lost its job all the same (a worker that came back from
# the dead ended it) is given another when it is overdue.
_OVERDUE_WITHOUT_JOB = f"""
SELECT id FROM pipeline_executions WHERE due_at < %s AND NOT EXISTS (
    SELECT 1 FROM {SCHEMA}.procrastinate_jobs AS job
    WHERE job.lock = 'run-' || pipeline_executions.id AND job.status IN ('todo', 'doing')
) ORDER BY due_at LIMIT 1000
"""


def defer_jobs(connection: Connection, run_ids: Sequence[int]) -> None:
    """Have each of these runs worked on when it is due."""
    if run_ids and not is_sqlite(connection):
        connection.exec_driver_sql(_DEFER, (list(run_ids),))


def defer_forgotten(connection: Connection, overdue_since: float) -> int:
    """Give a job to every run that was due by `overdue_since` and has none; how many there were."""
    forgotten = [row[0] for row in connection.exec_driver_sql(_OVERDUE_WITHOUT_JOB, (overdue_since,))]
    defer_jobs(connection, forgotten)
    return len(forgotten)

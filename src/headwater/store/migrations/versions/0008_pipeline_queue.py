"""Pipeline runs wait in line; on PostgreSQL, Procrastinate's tables in a schema of their own.

Revision ID: 0008
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

Seconds: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL, "sqlite")

# As that version ships it. A newer Procrastinate needs a migration of its own here, with its own files' SQL.
PROCRASTINATE = Path(__file__).parents[1] / "procrastinate-3.10.sql"


def upgrade() -> None:
    for column in (
        sa.Column("forced_no", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("rerun_no", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("next_step_type", sa.Text(), nullable=True),
        sa.Column("due_at", Seconds, nullable=True),
        sa.Column("slot_at", Seconds, nullable=True),
        sa.Column("cancel_requested_at", Seconds, nullable=True),
    ):
        op.add_column("pipeline_executions", column)
    op.create_index("ix_pipeline_executions_due", "pipeline_executions", ["due_at"])
    op.create_index(
        "uq_pipeline_executions_version",
        "pipeline_executions",
        ["item_id", "item_version", "template_id", "forced_no"],
        unique=True,
    )
    op.add_column(
        "pipeline_steps", sa.Column("crashes", sa.Integer(), nullable=False, server_default=sa.text("0"))
    )
    op.create_table(
        "step_rates",
        sa.Column("step_type", sa.Text(), nullable=False),
        sa.Column("next_at", Seconds, nullable=False),
        sa.PrimaryKeyConstraint("step_type", name="pk_step_rates"),
    )
    if op.get_bind().dialect.name == "postgresql":
        _create_procrastinate()


def _create_procrastinate() -> None:
    connection = op.get_bind()
    before = connection.exec_driver_sql("SHOW search_path").scalar_one()
    connection.exec_driver_sql("CREATE SCHEMA procrastinate")
    connection.exec_driver_sql("SET LOCAL search_path = procrastinate")
    # Straight to the driver, which without parameters takes many statements at once and a % as it is.
    execute = connection.connection.cursor().execute
    execute(PROCRASTINATE.read_text(encoding="utf-8"))
    # By these, jobs of one lock are found; its own index starts with the id and cannot be used for it.
    connection.exec_driver_sql(
        "CREATE INDEX headwater_jobs_lock ON procrastinate_jobs (lock) WHERE status IN ('todo', 'doing')"
    )
    # Its functions name its tables without the schema. So that our transactions can call them, each brings its
    # own search path along.
    execute(
        "DO $$ DECLARE f regprocedure; BEGIN FOR f IN SELECT oid::regprocedure FROM pg_proc"
        " WHERE pronamespace = 'procrastinate'::regnamespace"
        " LOOP EXECUTE format('ALTER FUNCTION %s SET search_path = procrastinate, pg_temp', f);"
        " END LOOP; END $$"
    )
    connection.exec_driver_sql(f"SET LOCAL search_path = {before}")

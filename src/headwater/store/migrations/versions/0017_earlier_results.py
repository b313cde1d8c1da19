"""What the steps of a run gave before they were run again.

Revision ID: 0017
"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0014"

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Seconds: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL, "sqlite")


def upgrade() -> None:
    op.create_table(
        "pipeline_step_results",
        sa.Column("id", Id, nullable=False),
        sa.Column("execution_id", Id, nullable=False),
        sa.Column("step_index", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("output_data", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("started_at", Seconds, nullable=True),
        sa.Column("completed_at", Seconds, nullable=True),
        sa.Column("replaced_at", Seconds, nullable=False),
        sa.ForeignKeyConstraint(
            ["execution_id"],
            ["pipeline_executions.id"],
            name="fk_pipeline_step_results_execution_id_pipeline_executions",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_pipeline_step_results"),
    )
    op.create_index(
        "ix_pipeline_step_results_execution_id_step_index",
        "pipeline_step_results",
        ["execution_id", "step_index"],
    )

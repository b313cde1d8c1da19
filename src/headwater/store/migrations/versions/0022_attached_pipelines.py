"""Pipelines attach to sources, folders, types, tags and everything, several at once and in an order.

Revision ID: 0022
"""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Seconds: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL, "sqlite")


def upgrade() -> None:
    op.create_table(
        "pipeline_attachments",
        sa.Column("id", Id, nullable=False),
        sa.Column("template_id", Id, nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("created_at", Seconds, nullable=False),
        sa.ForeignKeyConstraint(
            ["template_id"],
            ["pipeline_templates.id"],
            name="fk_pipeline_attachments_template_id_pipeline_templates",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_pipeline_attachments"),
        sa.UniqueConstraint(
            "template_id", "scope", "value", name="uq_pipeline_attachments_template_id_scope_value"
        ),
    )
    op.create_index("ix_pipeline_attachments_scope_value", "pipeline_attachments", ["scope", "value"])
    op.add_column(
        "pipeline_templates", sa.Column("place", sa.Integer(), server_default=sa.text("0"), nullable=False)
    )
    op.execute(
        "INSERT INTO pipeline_attachments (template_id, scope, value, created_at)"
        " SELECT pipeline_template_id, 'source', CAST(id AS TEXT), updated_at FROM sources"
        " WHERE pipeline_template_id IS NOT NULL ORDER BY id"
    )

"""Sessions of the dashboard, which can be listed and ended, and links that sign in once.

Revision ID: 0014
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0020"

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Seconds: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL, "sqlite")


def upgrade() -> None:
    op.create_table(
        "sessions",
        sa.Column("id", Id, nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("signed_in_by", sa.Text(), nullable=False),
        sa.Column("key_id", Id, nullable=True),
        sa.Column("password_mark", sa.LargeBinary(), nullable=True),
        sa.Column("owner_id", Id, nullable=True),
        sa.Column("address", sa.Text(), nullable=True),
        sa.Column("user_agent", sa.Text(), nullable=True),
        sa.Column("created_at", Seconds, nullable=False),
        sa.Column("last_used_at", Seconds, nullable=False),
        sa.Column("expires_at", Seconds, nullable=False),
        sa.ForeignKeyConstraint(
            ["key_id"], ["api_keys.id"], name="fk_sessions_key_id_api_keys", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
        sa.UniqueConstraint("token_hash", name="uq_sessions_token_hash"),
    )
    op.create_index("ix_sessions_key_id", "sessions", ["key_id"])
    op.create_table(
        "sign_in_links",
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("owner_id", Id, nullable=True),
        sa.Column("created_at", Seconds, nullable=False),
        sa.Column("expires_at", Seconds, nullable=False),
        sa.PrimaryKeyConstraint("token_hash", name="pk_sign_in_links"),
    )

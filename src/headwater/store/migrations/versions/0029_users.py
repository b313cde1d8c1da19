"""Users, their app passwords and invitations; keys, sessions and sign-in links belong to a user.

There is always an admin: everything that exists belongs to the first, which is made here.

Revision ID: 0029
"""

import time

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Seconds: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL, "sqlite")


def upgrade() -> None:
    _make_users()
    _move_keys_sessions_and_links()
    _make_app_passwords_and_invitations()


def _make_users() -> None:
    op.create_table(
        "users",
        sa.Column("id", Id, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=True),
        sa.Column("password_hash", sa.Text(), nullable=True),
        sa.Column("role", sa.Text(), server_default=sa.text("'reader'"), nullable=False),
        sa.Column("is_disabled", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("created_at", Seconds, nullable=False),
        sa.Column("last_seen_at", Seconds, nullable=True),
        sa.Column("preferences", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("oidc_subject", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
        sa.UniqueConstraint("name", name="uq_users_name"),
        sa.UniqueConstraint("oidc_subject", name="uq_users_oidc_subject"),
    )
    op.get_bind().execute(
        sa.text("INSERT INTO users (id, name, role, created_at) VALUES (1, 'admin', 'admin', :now)"),
        {"now": time.time()},
    )
    if op.get_context().dialect.name == "postgresql":
        op.execute("SELECT setval(pg_get_serial_sequence('users', 'id'), 1)")


def _move_keys_sessions_and_links() -> None:
    # SQLite cannot change a table that others refer to without deleting their rows: sessions stand aside meanwhile.
    op.execute("CREATE TABLE sessions_before AS SELECT * FROM sessions")
    op.execute("CREATE TABLE links_before AS SELECT * FROM sign_in_links")
    op.drop_table("sessions")
    op.drop_table("sign_in_links")
    with op.batch_alter_table("api_keys") as keys:
        keys.add_column(sa.Column("expires_at", Seconds, nullable=True))
        keys.add_column(sa.Column("user_id", Id, server_default=sa.text("1"), nullable=False))
        keys.create_foreign_key("fk_api_keys_user_id_users", "users", ["user_id"], ["id"], ondelete="CASCADE")
    with op.batch_alter_table("api_keys") as keys:
        keys.alter_column("user_id", server_default=None)
    op.create_index("ix_api_keys_user_id", "api_keys", ["user_id"])
    _make_sessions()
    op.execute(
        "INSERT INTO sessions (id, token_hash, signed_in_by, key_id, password_mark, user_id, address,"
        " user_agent, created_at, last_used_at, expires_at)"
        " SELECT id, token_hash, signed_in_by, key_id, password_mark, 1, address,"
        " user_agent, created_at, last_used_at, expires_at FROM sessions_before"
    )
    op.execute(
        "INSERT INTO sign_in_links (token_hash, user_id, created_at, expires_at)"
        " SELECT token_hash, 1, created_at, expires_at FROM links_before"
    )
    op.drop_table("sessions_before")
    op.drop_table("links_before")
    if op.get_context().dialect.name == "postgresql":
        op.execute(
            "SELECT setval(pg_get_serial_sequence('sessions', 'id'), max(id)) FROM sessions HAVING max(id) > 0"
        )


def _make_sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("id", Id, nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("signed_in_by", sa.Text(), nullable=False),
        sa.Column("key_id", Id, nullable=True),
        sa.Column("password_mark", sa.LargeBinary(), nullable=True),
        sa.Column("user_id", Id, nullable=False),
        sa.Column("address", sa.Text(), nullable=True),
        sa.Column("user_agent", sa.Text(), nullable=True),
        sa.Column("created_at", Seconds, nullable=False),
        sa.Column("last_used_at", Seconds, nullable=False),
        sa.Column("expires_at", Seconds, nullable=False),
        sa.ForeignKeyConstraint(
            ["key_id"], ["api_keys.id"], name="fk_sessions_key_id_api_keys", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_sessions_user_id_users", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
        sa.UniqueConstraint("token_hash", name="uq_sessions_token_hash"),
    )
    op.create_index("ix_sessions_key_id", "sessions", ["key_id"])
    op.create_index("ix_sessions_user_id", "sessions", ["user_id"])
    op.create_table(
        "sign_in_links",
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("user_id", Id, nullable=False),
        sa.Column("created_at", Seconds, nullable=False),
        sa.Column("expires_at", Seconds, nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_sign_in_links_user_id_users", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("token_hash", name="pk_sign_in_links"),
    )


def _make_app_passwords_and_invitations() -> None:
    op.create_table(
        "app_passwords",
        sa.Column("id", Id, nullable=False),
        sa.Column("user_id", Id, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("password_hash", sa.LargeBinary(), nullable=False),
        sa.Column("fever_hash", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", Seconds, nullable=False),
        sa.Column("last_used_at", Seconds, nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_app_passwords_user_id_users", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_app_passwords"),
        sa.UniqueConstraint("password_hash", name="uq_app_passwords_password_hash"),
        sa.UniqueConstraint("fever_hash", name="uq_app_passwords_fever_hash"),
    )
    op.create_index("ix_app_passwords_user_id", "app_passwords", ["user_id"])
    op.create_table(
        "invitations",
        sa.Column("id", Id, nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("created_by", Id, nullable=False),
        sa.Column("created_at", Seconds, nullable=False),
        sa.Column("expires_at", Seconds, nullable=False),
        sa.Column("used_by", Id, nullable=True),
        sa.Column("used_at", Seconds, nullable=True),
        sa.ForeignKeyConstraint(
            ["created_by"], ["users.id"], name="fk_invitations_created_by_users", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["used_by"], ["users.id"], name="fk_invitations_used_by_users", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_invitations"),
        sa.UniqueConstraint("token_hash", name="uq_invitations_token_hash"),
    )

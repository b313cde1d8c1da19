"""The tables of people: accounts, keys, sessions and invitations."""

from typing import Any

from sqlalchemy import Boolean, Column, ForeignKey, Index, LargeBinary, Table, Text, UniqueConstraint

from headwater.store.core.tables.columns import Id, Seconds, column, metadata

users = Table(
    "users",
    metadata,
    Column("id", Id, primary_key=True),
    column("name", Text),  # case-folded
    column("email", Text, null=True),
    column("password_hash", Text, null=True),  # argon2id; NULL: signs in by other means
    column("role", Text, "'reader'"),  # admin or reader
    column("is_disabled", Boolean, "false"),
    column("created_at", Seconds),
    column("last_seen_at", Seconds, null=True),
    column("preferences", Text, "'{}'"),  # JSON
    column("oidc_subject", Text, null=True),  # issuer and subject at an OpenID Connect provider
    UniqueConstraint("name"),
    UniqueConstraint("oidc_subject"),
)


def usercolumn(name: str = "user_id", *, ondelete: str = "CASCADE", null: bool = False) -> Column[Any]:
    return Column(name, Id, ForeignKey("users.id", ondelete=ondelete), nullable=null)


api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Id, primary_key=True),
    column("name", Text),
    column("prefix", Text),  # what people see of the key afterwards
    column("key_hash", LargeBinary),
    column("scopes", Text, "'[]'"),  # JSON
    column("created_at", Seconds),
    column("last_used_at", Seconds, null=True),
    column("revoked_at", Seconds, null=True),
    column("expires_at", Seconds, null=True),
    usercolumn(),
    UniqueConstraint("key_hash"),
)
Index("ix_api_keys_user_id", api_keys.c.user_id)

app_passwords = Table(  # of reader apps
    "app_passwords",
    metadata,
    Column("id", Id, primary_key=True),
    usercolumn(),
    column("name", Text),
    column("password_hash", LargeBinary),
    column("fever_hash", LargeBinary),  # of the key that Fever clients send: md5(user:password)
    column("created_at", Seconds),
    column("last_used_at", Seconds, null=True),
    UniqueConstraint("password_hash"),
    UniqueConstraint("fever_hash"),
)
Index("ix_app_passwords_user_id", app_passwords.c.user_id)

invitations = Table(  # each makes one account
    "invitations",
    metadata,
    Column("id", Id, primary_key=True),
    column("token_hash", LargeBinary),
    column("role", Text),
    usercolumn("created_by"),
    column("created_at", Seconds),
    column("expires_at", Seconds),
    usercolumn("used_by", ondelete="SET NULL", null=True),
    column("used_at", Seconds, null=True),
    UniqueConstraint("token_hash"),
)

sessions = Table(  # of people signed in to the dashboard
    "sessions",
    metadata,
    Column("id", Id, primary_key=True),
    column("token_hash", LargeBinary),
    column("signed_in_by", Text),  # key, password, link, account, oidc
    Column("key_id", Id, ForeignKey("api_keys.id", ondelete="CASCADE")),
    # Of the password in the settings when it was opened; NULL: a key or an account opened it.
    column("password_mark", LargeBinary, null=True),
    usercolumn(),
    column("address", Text, null=True),
    column("user_agent", Text, null=True),
    column("created_at", Seconds),
    column("last_used_at", Seconds),
    column("expires_at", Seconds),
    UniqueConstraint("token_hash"),
)
Index("ix_sessions_key_id", sessions.c.key_id)
Index("ix_sessions_user_id", sessions.c.user_id)

sign_in_links = Table(  # each signs in once
    "sign_in_links",
    metadata,
    Column("token_hash", LargeBinary, primary_key=True),
    usercolumn(),
    column("created_at", Seconds),
    column("expires_at", Seconds),
)

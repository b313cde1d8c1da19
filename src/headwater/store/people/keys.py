"""API keys: made, shown once, recognised by their hash, revoked. What needs which scope is said where it is done."""

import hashlib
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import orjson
from sqlalchemy import Connection, Row, select

from headwater.errors import InputError, NotFoundError
from headwater.model import Role, User
from headwater.store.core.bulk import storable
from headwater.store.core.tables import api_keys, sessions, users
from headwater.store.people.users import first_admin, get_user

# read: see; refresh: visit sources now; admin: all; edit: change one's own subscriptions, reading state and bookmarks.
Scope = Literal["read", "refresh", "admin", "edit"]
SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
ADMIN_SCOPES: Final = tuple(scope for scope in SCOPES if scope != "edit")  # admin includes it
READER_SCOPES: Final = tuple(scope for scope in SCOPES if scope != "admin")
KEY_START: Final = "hw_"
_SECRET_BYTES = 32
_SHOWN = len(KEY_START) + 6
USED_EVERY_SECONDS = 60.0  # how exactly the last use is kept: not every request is worth a write


@dataclass(frozen=True, slots=True)
class ApiKey:
    """What is known of a key. The key itself is known to its holder alone."""

    id: int
    name: str
    prefix: str
    scopes: tuple[str, ...]
    created_at: float
    last_used_at: float | None
    revoked_at: float | None
    expires_at: float | None = None
    user_id: int = 1
    user_name: str = "admin"
    role: Role = "admin"  # of its user

    def allows(self, scope: str) -> bool:
        """Whether a holder may do what needs `scope`; an admin may do everything."""
        return scope in self.scopes or "admin" in self.scopes


def scopes_of_role(role: str) -> tuple[Scope, ...]:
    """What a user of this role may do without a key's limits."""
    return ADMIN_SCOPES if role == "admin" else READER_SCOPES


def add_key(
    connection: Connection,
    *,
    name: str,
    scopes: Iterable[str],
    now: float,
    user_id: int | None = None,
    expires_at: float | None = None,
) -> tuple[ApiKey, str]:
    """Make a key, of the first admin unless a user is given. The second part of the result is the key itself."""
    wanted = set(scopes)
    if unknown := sorted(wanted - set(SCOPES)):
        raise InputError(
            "there is no scope {scope}; choose from {known}", scope=unknown[0], known=", ".join(SCOPES)
        )
    if not wanted:
        raise InputError("a key needs a scope; choose from {known}", known=", ".join(SCOPES))
    name = (storable(name) or "").strip()
    if not name:
        raise InputError("a key needs a name to identify it")
    owner = first_admin(connection) if user_id is None else get_user(connection, user_id)
    if "admin" in wanted and not owner.is_admin:
        raise InputError("only a key of an admin can have the scope {scope}", scope="admin")
    if expires_at is not None and expires_at <= now:
        raise InputError("a key has to expire in the future")
    secret = KEY_START + secrets.token_urlsafe(_SECRET_BYTES)
    row = connection.execute(
        api_keys.insert()
        .values(
            name=name,
            prefix=secret[:_SHOWN],
            key_hash=_hash(secret),
            scopes=orjson.dumps([scope for scope in SCOPES if scope in wanted]).decode(),
            created_at=now,
            user_id=owner.id,
            expires_at=expires_at,
        )
        .returning(*api_keys.c)
    ).one()
    return _key_from(row, owner), secret


def list_keys(connection: Connection, user_id: int | None = None) -> list[ApiKey]:
    """All keys, or those of one user; revoked ones too."""
    query = _KEYS.order_by(api_keys.c.id)
    if user_id is not None:
        query = query.where(api_keys.c.user_id == user_id)
    return [_key_from(row) for row in connection.execute(query)]


def has_key(connection: Connection) -> bool:
    """Whether there is a key that works."""
    live = select(api_keys.c.id).where(api_keys.c.revoked_at.is_(None)).limit(1)
    return connection.execute(live).first() is not None


def revoke_key(connection: Connection, key_id: int, now: float, *, user_id: int | None = None) -> ApiKey:
    """Revoke a key at once and for ever, and end the sessions it opened. Repeating it is not an error.

    With `user_id`, only a key of that user's is found.
    """
    query = _KEYS.where(api_keys.c.id == key_id)
    if user_id is not None:
        query = query.where(api_keys.c.user_id == user_id)
    if connection.execute(query).first() is None:
        raise NotFoundError("there is no key {id}", hint="`headwater key list` shows them all", id=key_id)
    connection.execute(
        api_keys.update()
        .where(api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None))
        .values(revoked_at=now)
    )
    connection.execute(sessions.delete().where(sessions.c.key_id == key_id))
    return _key_from(connection.execute(query).one())


def find_key(connection: Connection, secret: str, now: float | None = None) -> ApiKey | None:
    """The key with this secret, unless it is unknown, revoked or expired (at `now`), or its user is disabled."""
    # Looked up by the hash of a random number: how long it takes says nothing about the keys there are.
    row = connection.execute(
        _KEYS.where(
            api_keys.c.key_hash == _hash(secret),
            api_keys.c.revoked_at.is_(None),
            users.c.is_disabled.is_(False),
        )
    ).first()
    if row is None or (
        row.expires_at is not None and row.expires_at <= (time.time() if now is None else now)
    ):
        return None
    return _key_from(row)


def is_use_worth_noting(key: ApiKey, now: float) -> bool:
    return key.last_used_at is None or not 0 <= now - key.last_used_at < USED_EVERY_SECONDS


def note_use(connection: Connection, key_id: int, now: float) -> None:
    connection.execute(api_keys.update().where(api_keys.c.id == key_id).values(last_used_at=now))


def _hash(secret: str) -> bytes:
    # 256 random bits cannot be guessed, so a slow hash would protect nothing.
    return hashlib.blake2b(
        secret.encode("utf-8", "replace"), digest_size=32, person=b"headwater key"
    ).digest()


_KEYS = select(api_keys, users.c.name.label("user_name"), users.c.role).join(
    users, users.c.id == api_keys.c.user_id
)


def _key_from(row: Row[Any], owner: User | None = None) -> ApiKey:
    return ApiKey(
        id=row.id,
        name=row.name,
        prefix=row.prefix,
        scopes=tuple(orjson.loads(row.scopes)),
        created_at=row.created_at,
        last_used_at=row.last_used_at,
        revoked_at=row.revoked_at,
        expires_at=row.expires_at,
        user_id=row.user_id,
        user_name=row.user_name if owner is None else owner.name,
        role=row.role if owner is None else owner.role,
    )

"""API keys: made, shown once, recognised by their hash, revoked. What needs which scope is said where it is done."""

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import orjson
from sqlalchemy import Connection, Row, func, select

from headwater.errors import InputError, NotFoundError
from headwater.store.bulk import is_sqlite, storable
from headwater.store.tables import api_keys

SCOPES: Final = ("read", "refresh", "admin")
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

    def allows(self, scope: str) -> bool:
        """Whether a holder may do what needs `scope`; an admin may do everything."""
        return scope in self.scopes or "admin" in self.scopes


def add_key(connection: Connection, *, name: str, scopes: Iterable[str], now: float) -> tuple[ApiKey, str]:
    """Make a key. The second part of the answer is the key itself, which nobody can read again."""
    wanted = set(scopes)
    if unknown := sorted(wanted - set(SCOPES)):
        raise InputError(
            "there is no scope {scope}; choose from {known}", scope=unknown[0], known=", ".join(SCOPES)
        )
    if not wanted:
        raise InputError("a key needs a scope; choose from {known}", known=", ".join(SCOPES))
    name = (storable(name) or "").strip()
    if not name:
        raise InputError("a key needs a name, by which it is told from the others")
    secret = KEY_START + secrets.token_urlsafe(_SECRET_BYTES)
    row = connection.execute(
        api_keys.insert()
        .values(
            name=name,
            prefix=secret[:_SHOWN],
            key_hash=_hash(secret),
            scopes=orjson.dumps([scope for scope in SCOPES if scope in wanted]).decode(),
            created_at=now,
        )
        .returning(*api_keys.c)
    ).one()
    return _key_from(row), secret


def add_first_key(connection: Connection, *, name: str, now: float) -> str | None:
    """An admin key if there never was any key; None otherwise, however many come at once."""
    if not is_sqlite(connection):
        connection.exec_driver_sql("LOCK TABLE api_keys IN SHARE ROW EXCLUSIVE MODE")
    if connection.execute(select(func.count()).select_from(api_keys)).scalar_one():
        return None
    return add_key(connection, name=name, scopes=["admin"], now=now)[1]


def list_keys(connection: Connection) -> list[ApiKey]:
    """All keys, revoked ones too."""
    return [_key_from(row) for row in connection.execute(select(api_keys).order_by(api_keys.c.id))]


def has_key(connection: Connection) -> bool:
    """Whether there is a key that works."""
    live = select(api_keys.c.id).where(api_keys.c.revoked_at.is_(None)).limit(1)
    return connection.execute(live).first() is not None


def revoke_key(connection: Connection, key_id: int, now: float) -> ApiKey:
    """Make a key worthless, at once and for ever. Again is no error."""
    connection.execute(
        api_keys.update()
        .where(api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None))
        .values(revoked_at=now)
    )
    row = connection.execute(select(api_keys).where(api_keys.c.id == key_id)).first()
    if row is None:
        raise NotFoundError("there is no key {id}; `headwater key list` shows them all", id=key_id)
    return _key_from(row)


def find_key(connection: Connection, secret: str) -> ApiKey | None:
    """The key that `secret` is, unless it is revoked or none of ours."""
    # Looked up by the hash of a random number: how long it takes says nothing about the keys there are.
    row = connection.execute(
        select(api_keys).where(api_keys.c.key_hash == _hash(secret), api_keys.c.revoked_at.is_(None))
    ).first()
    return None if row is None else _key_from(row)


def get_active_key(connection: Connection, key_id: int) -> ApiKey | None:
    """A key by its number, unless it is revoked or there is none."""
    row = connection.execute(
        select(api_keys).where(api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None))
    ).first()
    return None if row is None else _key_from(row)


def is_use_worth_noting(key: ApiKey, now: float) -> bool:
    return key.last_used_at is None or not 0 <= now - key.last_used_at < USED_EVERY_SECONDS


def note_use(connection: Connection, key_id: int, now: float) -> None:
    connection.execute(api_keys.update().where(api_keys.c.id == key_id).values(last_used_at=now))


def _hash(secret: str) -> bytes:
    # 256 random bits cannot be guessed, so a slow hash would protect nothing.
    return hashlib.blake2b(
        secret.encode("utf-8", "replace"), digest_size=32, person=b"headwater key"
    ).digest()


def _key_from(row: Row[Any]) -> ApiKey:
    return ApiKey(
        id=row.id,
        name=row.name,
        prefix=row.prefix,
        scopes=tuple(orjson.loads(row.scopes)),
        created_at=row.created_at,
        last_used_at=row.last_used_at,
        revoked_at=row.revoked_at,
    )

"""App passwords: random passwords for reader apps, shown once, recognised by their hash.

Fever clients send md5(user:password) instead of the password. Its hash is stored as well: a thief of the database
can sign in with neither.
"""

import hashlib
import secrets
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, select

from headwater.errors import InputError, NotFoundError
from headwater.model import User
from headwater.store.core.bulk import storable
from headwater.store.core.tables import app_passwords, users
from headwater.store.people.users import fold_name, get_user, user_from

LONGEST_NAME = 200
LONGEST_PASSWORD = 200
USED_EVERY_SECONDS = 60.0  # how exactly the last use is kept
_SECRET_BYTES = 18  # 24 characters, which a person may have to type


@dataclass(frozen=True, slots=True)
class AppPassword:
    """What is known of an app password. The password itself is not stored."""

    id: int
    user_id: int
    name: str
    created_at: float
    last_used_at: float | None


def add_app_password(
    connection: Connection, *, user_id: int, name: str, now: float
) -> tuple[AppPassword, str]:
    """Make an app password. The second part of the result is the password, which is stored nowhere."""
    user = get_user(connection, user_id)
    name = (storable(name) or "").strip()[:LONGEST_NAME]
    if not name:
        raise InputError("an app password needs a name, such as the app's")
    password = secrets.token_urlsafe(_SECRET_BYTES)
    row = connection.execute(
        app_passwords.insert()
        .values(
            user_id=user_id,
            name=name,
            password_hash=_hash(password),
            fever_hash=_hash(fever_key(user.name, password)),
            created_at=now,
        )
        .returning(*app_passwords.c)
    ).one()
    return _app_password(row), password


def list_app_passwords(connection: Connection, user_id: int) -> list[AppPassword]:
    query = select(app_passwords).where(app_passwords.c.user_id == user_id).order_by(app_passwords.c.id)
    return [_app_password(row) for row in connection.execute(query)]


def remove_app_password(connection: Connection, user_id: int, password_id: int) -> None:
    """Delete an app password of this user's; apps that use it are signed out."""
    gone = app_passwords.delete().where(app_passwords.c.id == password_id, app_passwords.c.user_id == user_id)
    if not connection.execute(gone).rowcount:
        raise NotFoundError("there is no app password {id}", id=password_id)


def find_user_by_app_password(connection: Connection, name: str, password: str) -> User | None:
    """The enabled user of this name or email address, if `password` is an app password of theirs."""
    found = _find(connection, app_passwords.c.password_hash == _hash(password))
    if found is None:
        return None
    user = found
    is_email = user.email is not None and user.email.casefold() == name.strip().casefold()
    return user if user.name == fold_name(name) or is_email else None


def find_user_by_fever_key(connection: Connection, md5: str) -> User | None:
    """The enabled user whose app password makes this Fever key."""
    return _find(connection, app_passwords.c.fever_hash == _hash(md5.strip().lower()))


def find_app_password(connection: Connection, password: str) -> AppPassword | None:
    """The app password with this text; None if it is unknown."""
    return _find_password(connection, app_passwords.c.password_hash == _hash(password))


def find_app_password_by_fever_key(connection: Connection, md5: str) -> AppPassword | None:
    """The app password that makes this Fever key; None if it is unknown."""
    return _find_password(connection, app_passwords.c.fever_hash == _hash(md5.strip().lower()))


def is_app_password_use_worth_noting(password: AppPassword, now: float) -> bool:
    return password.last_used_at is None or not 0 <= now - password.last_used_at < USED_EVERY_SECONDS


def note_app_password_use(connection: Connection, password_id: int, now: float) -> None:
    connection.execute(
        app_passwords.update().where(app_passwords.c.id == password_id).values(last_used_at=now)
    )


def fever_key(name: str, password: str) -> str:
    """The key that Fever clients send."""
    return hashlib.md5(f"{name}:{password}".encode("utf-8", "replace"), usedforsecurity=False).hexdigest()


def _find(connection: Connection, is_it: ColumnElement[bool]) -> User | None:
    row = connection.execute(
        select(users)
        .join(app_passwords, app_passwords.c.user_id == users.c.id)
        .where(is_it, users.c.is_disabled.is_(False))
    ).first()
    return None if row is None else user_from(row)


def _find_password(connection: Connection, is_it: ColumnElement[bool]) -> AppPassword | None:
    row = connection.execute(select(app_passwords).where(is_it)).first()
    return None if row is None else _app_password(row)


def _hash(secret: str) -> bytes:
    # 144 random bits cannot be guessed, so a slow hash would protect nothing.
    return hashlib.blake2b(
        secret[:LONGEST_PASSWORD].encode("utf-8", "replace"), digest_size=32, person=b"headwater app"
    ).digest()


def _app_password(row: Row[Any]) -> AppPassword:
    return AppPassword(row.id, row.user_id, row.name, row.created_at, row.last_used_at)

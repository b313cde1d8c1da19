"""Users: people with an account, their role and preferences. There is always an enabled admin."""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Final, get_args

import orjson
from sqlalchemy import Connection, Row, func, select

from headwater.errors import ConflictError, InputError, NotFoundError
from headwater.model import Role, User
from headwater.store.core.tables import api_keys, sessions, sign_in_links, users
from headwater.store.people.passwords import is_password

ROLES: Final[tuple[Role, ...]] = get_args(Role)
FIRST_USER_NAME: Final = "admin"
LONGEST_NAME = 64
LONGEST_EMAIL = 320
MOST_PREFERENCES_CHARACTERS = 100_000
SEEN_EVERY_SECONDS = 60.0  # how exactly `last_seen_at` is kept
_NAME = re.compile(r"[\w.@+-]+")


def fold_name(name: str) -> str:
    """A user name as it is stored and compared."""
    return unicodedata.normalize("NFKC", name.strip()).casefold()


def name_from(text: str) -> str:
    """A user name made from what another program calls a person."""
    return re.sub(r"[^\w.@+-]+", ".", fold_name(text)).strip(".")[: LONGEST_NAME - 4] or "user"


def add_user(
    connection: Connection,
    *,
    name: str,
    role: str = "reader",
    now: float,
    password_hash: str | None = None,
    email: str | None = None,
    oidc_subject: str | None = None,
) -> User:
    """Make an account; ConflictError when the name is taken."""
    folded = _checked_name(name)
    if find_user(connection, folded) is not None:
        raise ConflictError("the user name {name} is taken", name=folded)
    row = connection.execute(
        users.insert()
        .values(
            name=folded,
            role=_checked_role(role),
            email=_checked_email(email),
            password_hash=password_hash,
            oidc_subject=oidc_subject,
            created_at=now,
        )
        .returning(*users.c)
    ).one()
    return _user_from(row)


def find_or_add_user(connection: Connection, name: str, now: float) -> User:
    """The user of this name; a new reader when there is none."""
    return find_user(connection, name) or add_user(connection, name=name, now=now)


def make_first_user(connection: Connection, now: float) -> None:
    """Make the admin that every database begins with, if there are no users."""
    if connection.execute(select(users.c.id).limit(1)).first() is None:
        add_user(connection, name=FIRST_USER_NAME, role="admin", now=now)


def get_user(connection: Connection, user_id: int) -> User:
    """The user of this number; NotFoundError when there is none."""
    row = connection.execute(select(users).where(users.c.id == user_id)).first()
    if row is None:
        raise _no_user(user_id)
    return _user_from(row)


def find_user(connection: Connection, name: str) -> User | None:
    """The user of this name, in upper or lower case."""
    row = connection.execute(select(users).where(users.c.name == fold_name(name))).first()
    return None if row is None else _user_from(row)


def require_user(connection: Connection, name: str) -> User:
    """The user of this name; NotFoundError when there is none."""
    user = find_user(connection, name)
    if user is None:
        raise _no_user(name)
    return user


def find_user_by_subject(connection: Connection, oidc_subject: str) -> User | None:
    row = connection.execute(select(users).where(users.c.oidc_subject == oidc_subject)).first()
    return None if row is None else _user_from(row)


def list_users(connection: Connection) -> list[User]:
    return [_user_from(row) for row in connection.execute(select(users).order_by(users.c.id))]


def count_users(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(users)).scalar_one()


def first_admin(connection: Connection) -> User:
    """The enabled admin with the lowest number: the owner of what no other user has made."""
    row = connection.execute(
        select(users)
        .where(users.c.role == "admin", users.c.is_disabled.is_(False))
        .order_by(users.c.id)
        .limit(1)
    ).first()
    if row is None:
        raise NotFoundError("there is no admin", hint="make one: headwater user add NAME --role admin")
    return _user_from(row)


def only_user(connection: Connection) -> User | None:
    """The user, if there is exactly one."""
    rows = connection.execute(select(users).limit(2)).all()
    return _user_from(rows[0]) if len(rows) == 1 else None


def change_user(
    connection: Connection,
    user_id: int,
    *,
    role: str | None = None,
    email: str | None = None,
    preferences: Mapping[str, Any] | None = None,
    oidc_subject: str | None = None,
) -> User:
    """Change what is given. An empty email removes it. The last admin stays one."""
    user = get_user(connection, user_id)
    changes: dict[str, Any] = {}
    if role is not None and _checked_role(role) != user.role:
        if user.is_admin:
            _refuse_last_admin(connection, user)
        changes["role"] = role
    if email is not None:
        changes["email"] = _checked_email(email)
    if preferences is not None:
        changes["preferences"] = _checked_preferences(preferences)
    if oidc_subject is not None:
        changes["oidc_subject"] = oidc_subject
    if changes:
        connection.execute(users.update().where(users.c.id == user_id).values(**changes))
    return get_user(connection, user_id)


def set_password(
    connection: Connection, user_id: int, password_hash: str | None, *, keep_session: int | None = None
) -> User:
    """Store a new password's hash and end the user's sessions and sign-in links, all but `keep_session`."""
    get_user(connection, user_id)
    connection.execute(users.update().where(users.c.id == user_id).values(password_hash=password_hash))
    ended = sessions.delete().where(sessions.c.user_id == user_id)
    if keep_session is not None:
        ended = ended.where(sessions.c.id != keep_session)
    connection.execute(ended)
    connection.execute(sign_in_links.delete().where(sign_in_links.c.user_id == user_id))
    return get_user(connection, user_id)


def disable_user(connection: Connection, user_id: int, *, is_disabled: bool = True) -> User:
    """Lock a user out, at once and until enabled again; what is theirs stays."""
    user = get_user(connection, user_id)
    if is_disabled:
        _refuse_last_admin(connection, user)
        connection.execute(sessions.delete().where(sessions.c.user_id == user_id))
        connection.execute(sign_in_links.delete().where(sign_in_links.c.user_id == user_id))
    connection.execute(users.update().where(users.c.id == user_id).values(is_disabled=is_disabled))
    return get_user(connection, user_id)


def remove_user(connection: Connection, user_id: int) -> User:
    """Delete a user and everything that is theirs."""
    user = get_user(connection, user_id)
    _refuse_last_admin(connection, user)
    # Sessions refer to keys as well: they are deleted first, so that no database has to choose an order.
    connection.execute(sessions.delete().where(sessions.c.user_id == user_id))
    connection.execute(api_keys.delete().where(api_keys.c.user_id == user_id))
    connection.execute(users.delete().where(users.c.id == user_id))
    return user


def find_password(connection: Connection, name: str) -> tuple[User | None, str | None]:
    """The enabled user of this name and the password's hash, for `is_password`."""
    row = connection.execute(
        select(users).where(users.c.name == fold_name(name), users.c.is_disabled.is_(False))
    ).first()
    return (None, None) if row is None else (_user_from(row), row.password_hash)


def verify_password(connection: Connection, name: str, password: str) -> User | None:
    """The enabled user with this name and password. Takes as long when there is none."""
    user, password_hash = find_password(connection, name)
    return user if is_password(password_hash, password) else None


def is_seeing_worth_noting(user: User, now: float) -> bool:
    return user.last_seen_at is None or not 0 <= now - user.last_seen_at < SEEN_EVERY_SECONDS


def note_seen(connection: Connection, user_id: int, now: float) -> None:
    connection.execute(users.update().where(users.c.id == user_id).values(last_seen_at=now))


def user_from(row: Row[Any]) -> User:
    """A user from a row with all columns of `users`."""
    return _user_from(row)


def _no_user(which: int | str) -> NotFoundError:
    return NotFoundError("there is no user {id}", hint="`headwater user list` shows them all", id=which)


def _refuse_last_admin(connection: Connection, user: User) -> None:
    if not user.is_admin or user.is_disabled:
        return
    others = select(func.count()).where(
        users.c.role == "admin", users.c.is_disabled.is_(False), users.c.id != user.id
    )
    if not connection.execute(others).scalar_one():
        raise InputError("{name} is the only admin; make another user an admin first", name=user.name)


def _checked_name(name: str) -> str:
    folded = fold_name(name)
    if not folded or len(folded) > LONGEST_NAME or _NAME.fullmatch(folded) is None:
        raise InputError(
            "{name} is not a user name; use letters, digits and . _ @ + -, at most {most} characters",
            name=name[:100],
            most=LONGEST_NAME,
        )
    return folded


def _checked_role(role: str) -> str:
    if role not in ROLES:
        raise InputError("there is no role {role}; choose from {known}", role=role, known=", ".join(ROLES))
    return role


def _checked_email(email: str | None) -> str | None:
    email = (email or "").strip()
    if not email:
        return None
    if len(email) > LONGEST_EMAIL or re.fullmatch(r"[^\s@]+@[^\s@]+", email) is None:
        raise InputError("{email} is not an email address", email=email[:100])
    return email


def _checked_preferences(preferences: Mapping[str, Any]) -> str:
    text = orjson.dumps(dict(preferences)).decode()
    if len(text) > MOST_PREFERENCES_CHARACTERS:
        raise InputError(
            "preferences are too long; at most {most} characters", most=MOST_PREFERENCES_CHARACTERS
        )
    return text


def _user_from(row: Row[Any]) -> User:
    return User(
        id=row.id,
        name=row.name,
        role=row.role,
        email=row.email,
        preferences=orjson.loads(row.preferences),
        is_disabled=row.is_disabled,
        has_password=row.password_hash is not None,
        created_at=row.created_at,
        last_seen_at=row.last_seen_at,
        oidc_subject=row.oidc_subject,
    )

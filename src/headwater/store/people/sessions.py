"""Sessions of people signed in to the dashboard, and links that sign in once. Only hashes of their tokens are stored.

A session ends when it is signed out or ended by an admin, when it expires, when its key is revoked, and, unless a key
opened it, when the password in the settings is no longer the one that was in force then (`password_mark`).
"""

import hashlib
import secrets
from dataclasses import dataclass
from typing import Any, Final, Literal

import orjson
from sqlalchemy import ColumnElement, Connection, Row, Select, and_, or_, select

from headwater.errors import NotFoundError
from headwater.store.core.bulk import storable
from headwater.store.core.tables import api_keys, sessions, sign_in_links, users
from headwater.store.people.keys import has_key, scopes_of_role
from headwater.store.people.users import first_admin, get_user

SESSION_SECONDS: Final = 30 * 86_400.0
LINK_SECONDS: Final = 3_600.0
LINK_START: Final = "hwl_"
USED_EVERY_SECONDS = 60.0  # how exactly the last use is kept
LONGEST_TOKEN = 200
LONGEST_AGENT = 300

SignedInBy = Literal["key", "password", "link", "account", "oidc"]


@dataclass(frozen=True, slots=True)
class Session:
    """A session that is in force."""

    id: int
    signed_in_by: SignedInBy
    key_name: str | None  # of the key that opened it
    scopes: tuple[str, ...]
    address: str | None
    user_agent: str | None
    created_at: float
    last_used_at: float
    expires_at: float
    user_id: int = 1
    user_name: str = "admin"


@dataclass(frozen=True, slots=True)
class NewSession:
    """Who signed in, and how."""

    signed_in_by: SignedInBy
    key_id: int | None = None
    password_mark: bytes | None = None
    address: str | None = None
    user_agent: str | None = None
    user_id: int | None = None  # the first admin unless given


def new_token() -> str:
    return secrets.token_urlsafe(32)


def open_session(connection: Connection, new: NewSession, now: float) -> str:
    """Begin a session; returns its token, which is stored nowhere. Expired sessions are deleted on the way."""
    token = new_token()
    connection.execute(sessions.delete().where(sessions.c.expires_at <= now))
    connection.execute(
        sessions.insert().values(
            token_hash=_hash(token),
            signed_in_by=new.signed_in_by,
            key_id=new.key_id,
            password_mark=new.password_mark,
            user_id=first_admin(connection).id if new.user_id is None else new.user_id,
            address=new.address,
            user_agent=(storable(new.user_agent) or "")[:LONGEST_AGENT] or None,
            created_at=now,
            last_used_at=now,
            expires_at=now + SESSION_SECONDS,
        )
    )
    return token


def find_session(connection: Connection, token: str, password_mark: bytes, now: float) -> Session | None:
    """The session of this token, if it is in force."""
    if not token or len(token) > LONGEST_TOKEN:
        return None
    query = _in_force(now).where(sessions.c.token_hash == _hash(token), _is_of_password(password_mark))
    row = connection.execute(query).first()
    return None if row is None else _session(row)


def is_session_use_worth_noting(session: Session, now: float) -> bool:
    return not 0 <= now - session.last_used_at < USED_EVERY_SECONDS


def note_session_use(connection: Connection, session_id: int, address: str | None, now: float) -> None:
    connection.execute(
        sessions.update().where(sessions.c.id == session_id).values(last_used_at=now, address=address)
    )


def list_sessions(connection: Connection, now: float, user_id: int | None = None) -> list[Session]:
    """Sessions in force, of all users or of one, the latest used first."""
    query = _in_force(now).order_by(sessions.c.last_used_at.desc(), sessions.c.id)
    if user_id is not None:
        query = query.where(sessions.c.user_id == user_id)
    return [_session(row) for row in connection.execute(query)]


def end_session(connection: Connection, session_id: int, user_id: int | None = None) -> None:
    """End one session, by its number. With `user_id`, only one of that user's is found."""
    ended = sessions.delete().where(sessions.c.id == session_id)
    if user_id is not None:
        ended = ended.where(sessions.c.user_id == user_id)
    if not connection.execute(ended).rowcount:
        raise NotFoundError("there is no session {id}", id=session_id)


def end_session_of(connection: Connection, token: str) -> None:
    """End the session of this token, if there is one."""
    connection.execute(sessions.delete().where(sessions.c.token_hash == _hash(token)))


def end_all_sessions(connection: Connection) -> int:
    """End every session; returns how many there were."""
    return connection.execute(sessions.delete()).rowcount


def end_sessions_of_other_passwords(connection: Connection, password_mark: bytes) -> int:
    """End the sessions that a former password had let in; returns how many."""
    return connection.execute(sessions.delete().where(~_is_of_password(password_mark))).rowcount


def make_link(connection: Connection, now: float, user_id: int | None = None) -> str:
    """A token that signs in once within LINK_SECONDS, as the first admin unless a user is given.

    It is stored nowhere. Expired ones are deleted on the way.
    """
    owner = first_admin(connection).id if user_id is None else get_user(connection, user_id).id
    token = LINK_START + new_token()
    connection.execute(sign_in_links.delete().where(sign_in_links.c.expires_at <= now))
    connection.execute(
        sign_in_links.insert().values(
            token_hash=_hash(token), user_id=owner, created_at=now, expires_at=now + LINK_SECONDS
        )
    )
    return token


def take_link(connection: Connection, token: str, now: float) -> int | None:
    """Use up a link and return its user's number; None if it was used before, has expired, or is unknown."""
    return connection.execute(
        sign_in_links.delete()
        .where(sign_in_links.c.token_hash == _hash(token), sign_in_links.c.expires_at > now)
        .returning(sign_in_links.c.user_id)
    ).scalar()


def can_anyone_sign_in(connection: Connection, now: float) -> bool:
    """Whether a key works, a session is in force, or an admin has a password or a provider."""
    can = select(users.c.id).where(
        users.c.role == "admin",
        users.c.is_disabled.is_(False),
        or_(users.c.password_hash.is_not(None), users.c.oidc_subject.is_not(None)),
    )
    ways = (can, _in_force(now))
    return has_key(connection) or any(connection.execute(way.limit(1)).first() for way in ways)


def _in_force(now: float) -> Select[Any]:
    return (
        select(
            sessions,
            api_keys.c.name.label("key_name"),
            api_keys.c.scopes,
            users.c.name.label("user_name"),
            users.c.role,
        )
        .join(users, users.c.id == sessions.c.user_id)
        .join(api_keys, api_keys.c.id == sessions.c.key_id, isouter=True)
        .where(
            sessions.c.expires_at > now,
            users.c.is_disabled.is_(False),
            or_(
                sessions.c.key_id.is_(None),
                and_(
                    api_keys.c.revoked_at.is_(None),
                    or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > now),
                ),
            ),
        )
    )


def _is_of_password(password_mark: bytes) -> ColumnElement[bool]:
    return or_(sessions.c.password_mark.is_(None), sessions.c.password_mark == password_mark)


def _hash(token: str) -> bytes:
    # 256 random bits cannot be guessed, so a slow hash would protect nothing.
    return hashlib.blake2b(
        token.encode("utf-8", "replace"), digest_size=32, person=b"headwater login"
    ).digest()


def _session(row: Row[Any]) -> Session:
    return Session(
        id=row.id,
        signed_in_by=row.signed_in_by,
        key_name=row.key_name,
        scopes=scopes_of_role(row.role) if row.scopes is None else tuple(orjson.loads(row.scopes)),
        address=row.address,
        user_agent=row.user_agent,
        created_at=row.created_at,
        last_used_at=row.last_used_at,
        expires_at=row.expires_at,
        user_id=row.user_id,
        user_name=row.user_name,
    )

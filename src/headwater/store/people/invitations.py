"""Invitations: links with which one person makes one account. Only the hash of the link's token is stored."""

import hashlib
import secrets
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row, select

from headwater.errors import InputError, NotFoundError
from headwater.model import Role, User
from headwater.store.core.tables import invitations
from headwater.store.people.users import ROLES, add_user

INVITATION_START: Final = "hwi_"
INVITATION_DAYS: Final = 7.0
MOST_INVITATION_DAYS: Final = 365.0
LONGEST_TOKEN = 200


@dataclass(frozen=True, slots=True)
class Invitation:
    id: int
    role: Role
    created_by: int
    created_at: float
    expires_at: float
    used_by: int | None
    used_at: float | None

    def is_open(self, now: float) -> bool:
        return self.used_at is None and self.expires_at > now


def add_invitation(
    connection: Connection, *, role: str, created_by: int, now: float, days: float = INVITATION_DAYS
) -> tuple[Invitation, str]:
    """Make an invitation. The second part of the result is its token, which is stored nowhere."""
    if role not in ROLES:
        raise InputError("there is no role {role}; choose from {known}", role=role, known=", ".join(ROLES))
    if not 0 < days <= MOST_INVITATION_DAYS:
        raise InputError("an invitation expires after 1 to {most:g} days", most=MOST_INVITATION_DAYS)
    token = INVITATION_START + secrets.token_urlsafe(32)
    row = connection.execute(
        invitations.insert()
        .values(
            token_hash=_hash(token),
            role=role,
            created_by=created_by,
            created_at=now,
            expires_at=now + days * 86_400.0,
        )
        .returning(*invitations.c)
    ).one()
    return _invitation(row), token


def list_invitations(connection: Connection) -> list[Invitation]:
    """All invitations, the newest first."""
    query = select(invitations).order_by(invitations.c.id.desc())
    return [_invitation(row) for row in connection.execute(query)]


def find_invitation(connection: Connection, token: str, now: float) -> Invitation | None:
    """The invitation of this token, unless it is used or has expired."""
    if len(token) > LONGEST_TOKEN:
        return None
    row = connection.execute(select(invitations).where(invitations.c.token_hash == _hash(token))).first()
    found = None if row is None else _invitation(row)
    return found if found is not None and found.is_open(now) else None


def remove_invitation(connection: Connection, invitation_id: int) -> None:
    if not connection.execute(invitations.delete().where(invitations.c.id == invitation_id)).rowcount:
        raise NotFoundError("there is no invitation {id}", id=invitation_id)


def accept_invitation(
    connection: Connection,
    token: str,
    *,
    name: str,
    now: float,
    password_hash: str | None = None,
    email: str | None = None,
    oidc_subject: str | None = None,
) -> User:
    """Make the account that an invitation is for, and use the invitation up."""
    invitation = find_invitation(connection, token, now)
    # Used up by one statement: of two who come at once, one finds nothing left to use.
    taken = invitations.update().where(
        invitations.c.token_hash == _hash(token), invitations.c.used_at.is_(None)
    )
    if invitation is None or not connection.execute(taken.values(used_at=now)).rowcount:
        raise InputError("this invitation was used before or has expired; ask for another")
    user = add_user(
        connection,
        name=name,
        role=invitation.role,
        now=now,
        password_hash=password_hash,
        email=email,
        oidc_subject=oidc_subject,
    )
    connection.execute(invitations.update().where(invitations.c.id == invitation.id).values(used_by=user.id))
    return user


def _hash(token: str) -> bytes:
    # 256 random bits cannot be guessed, so a slow hash would protect nothing.
    return hashlib.blake2b(
        token.encode("utf-8", "replace"), digest_size=32, person=b"headwater invite"
    ).digest()


def _invitation(row: Row[Any]) -> Invitation:
    return Invitation(
        row.id, row.role, row.created_by, row.created_at, row.expires_at, row.used_by, row.used_at
    )

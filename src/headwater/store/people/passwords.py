"""Passwords of accounts, hashed by argon2id. Hashing is slow on purpose: call it outside a write transaction."""

from functools import cache
from typing import TYPE_CHECKING

from headwater.errors import InputError

if TYPE_CHECKING:
    from argon2 import PasswordHasher

SHORTEST_PASSWORD = 8
LONGEST_PASSWORD = 1_000


@cache
def _hasher() -> "PasswordHasher":
    from argon2 import PasswordHasher, Type

    return PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1, type=Type.ID)


@cache
def _hash_of_no_user() -> str:
    return _hasher().hash("no user has this password")


def check_new_password(password: str) -> None:
    """Refuse a password that is too short or too long."""
    if len(password) < SHORTEST_PASSWORD:
        raise InputError("a password needs at least {least} characters", least=SHORTEST_PASSWORD)
    if len(password) > LONGEST_PASSWORD:
        raise InputError("a password has at most {most} characters", most=LONGEST_PASSWORD)


def hash_password(password: str) -> str:
    """The hash of a new password; InputError when it is too short or too long."""
    check_new_password(password)
    return _hasher().hash(password)


def is_password(password_hash: str | None, password: str) -> bool:
    """Whether `password` has this hash. Without a hash it takes as long and is False."""
    from argon2.exceptions import InvalidHashError, VerificationError

    if len(password) > LONGEST_PASSWORD:
        return False
    try:
        found = _hasher().verify(password_hash or _hash_of_no_user(), password.encode("utf-8", "replace"))
    except (
        VerificationError,
        InvalidHashError,
        UnicodeEncodeError,
    ):  # another program may have written the hash
        return False
    return found and password_hash is not None

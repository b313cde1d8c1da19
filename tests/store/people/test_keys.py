"""API keys: shown once, kept as a hash, revoked for good."""

import pytest
from sqlalchemy import select

from headwater.errors import InputError, NotFoundError
from headwater.store.core.database import Store
from headwater.store.core.tables import api_keys
from headwater.store.people.keys import add_key, find_key, has_key, list_keys, revoke_key
from tests.clock import NOON


def test_a_key_is_found_only_by_the_whole_key(store: Store) -> None:
    with store.writing() as connection:
        key, secret = add_key(connection, name=" me ", scopes=["refresh", "read"], now=NOON)
        assert (key.name, key.scopes) == ("me", ("read", "refresh"))
        assert find_key(connection, secret) == key
        for wrong in (secret[:-1], secret + "x", key.prefix, "", "\ud800"):
            assert find_key(connection, wrong) is None
        (row,) = connection.execute(select(api_keys)).all()
    assert secret.startswith(key.prefix) and len(key.prefix) == 9
    assert secret not in str(row) and secret[9:].encode() not in row.key_hash


def test_no_two_keys_are_alike(store: Store) -> None:
    with store.writing() as connection:
        secrets = {add_key(connection, name="me", scopes=["read"], now=NOON)[1] for _ in range(20)}
    assert len(secrets) == 20
    assert all(len(secret) >= 43 for secret in secrets), "256 bits take 43 letters"


def test_a_revoked_key_stays_listed_and_opens_nothing(store: Store) -> None:
    with store.writing() as connection:
        key, secret = add_key(connection, name="me", scopes=["admin"], now=NOON)
        assert has_key(connection)
        assert revoke_key(connection, key.id, NOON + 1).revoked_at == NOON + 1
        assert revoke_key(connection, key.id, NOON + 9).revoked_at == NOON + 1, "again changes nothing"
        assert find_key(connection, secret) is None
        assert not has_key(connection)
        assert [key.name for key in list_keys(connection)] == ["me"]
        with pytest.raises(NotFoundError, match="there is no key 77"):
            revoke_key(connection, 77, NOON)


@pytest.mark.parametrize(
    ("name", "scopes"), [("", ["read"]), ("me", []), ("me", ["write"]), ("\0", ["read"])]
)
def test_what_makes_no_key(store: Store, name: str, scopes: list[str]) -> None:
    with store.writing() as connection, pytest.raises(InputError):
        add_key(connection, name=name, scopes=scopes, now=NOON)

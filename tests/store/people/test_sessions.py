"""Sessions and sign-in links: hashes in the database, used up and ended for good."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from headwater.store.core.database import Store
from headwater.store.people.keys import add_key, revoke_key
from headwater.store.people.sessions import (
    SESSION_SECONDS,
    NewSession,
    can_anyone_sign_in,
    end_sessions_of_other_passwords,
    find_session,
    list_sessions,
    make_link,
    open_session,
    take_link,
)
from headwater.store.transfer.backup import restore_backup, write_backup
from headwater.store.transfer.copying import copied_tables
from tests.clock import NOON


def test_link_used_by_many_at_once_signs_in_one(store: Store) -> None:
    with store.writing() as connection:
        token = make_link(connection, NOON)

    def use(_: int) -> bool:
        with store.writing() as connection:
            return take_link(connection, token, NOON) is not None

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(use, range(8))) == [False] * 7 + [True]


def test_expired_sessions_are_deleted_when_another_begins(store: Store) -> None:
    with store.writing() as connection:
        token = open_session(connection, NewSession("link", password_mark=b""), NOON)
        assert find_session(connection, token, b"", NOON + SESSION_SECONDS - 1)
        assert find_session(connection, token, b"", NOON + SESSION_SECONDS) is None
        open_session(connection, NewSession("link", password_mark=b""), NOON + SESSION_SECONDS)
        assert len(list_sessions(connection, NOON)) == 1


def test_sessions_end_with_their_key_or_password(store: Store) -> None:
    with store.writing() as connection:
        key, _ = add_key(connection, name="me", scopes=["read"], now=NOON)
        by_key = open_session(connection, NewSession("key", key.id), NOON)
        by_password = open_session(connection, NewSession("password", password_mark=b"old"), NOON)
        assert find_session(connection, by_password, b"new", NOON) is None
        assert end_sessions_of_other_passwords(connection, b"new") == 1
        assert find_session(connection, by_password, b"old", NOON) is None
        found = find_session(connection, by_key, b"new", NOON)
        assert found is not None and (found.key_name, found.scopes) == ("me", ("read",))
        assert can_anyone_sign_in(connection, NOON)
        revoke_key(connection, key.id, NOON)
        assert list_sessions(connection, NOON) == []
        assert not can_anyone_sign_in(connection, NOON)


def test_a_backup_brings_no_session_back(store: Store, tmp_path: Path) -> None:
    assert not {"sessions", "sign_in_links"} & {table.name for table in copied_tables()}
    with store.writing() as connection:
        token = open_session(connection, NewSession("link", password_mark=b""), NOON)
    file = tmp_path / "backup.hwb"
    write_backup(store, file, NOON, lambda done, total, note: None)
    restore_backup(store, file, lambda done, total, note: None, replace=True)
    with store.reading() as connection:
        assert find_session(connection, token, b"", NOON) is None

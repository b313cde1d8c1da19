"""Users: names, roles, passwords, and that there is always an admin."""

import pytest
from sqlalchemy import Table, insert, select

from headwater.errors import ConflictError, InputError, NotFoundError
from headwater.store.core.database import Store
from headwater.store.core.tables import metadata, users
from headwater.store.people.app_passwords import (
    add_app_password,
    fever_key,
    find_app_password,
    find_user_by_app_password,
    find_user_by_fever_key,
    is_app_password_use_worth_noting,
    list_app_passwords,
    note_app_password_use,
    remove_app_password,
)
from headwater.store.people.invitations import (
    accept_invitation,
    add_invitation,
    find_invitation,
    list_invitations,
    remove_invitation,
)
from headwater.store.people.keys import add_key, find_key, list_keys, revoke_key
from headwater.store.people.passwords import hash_password, is_password
from headwater.store.people.sessions import (
    NewSession,
    end_session,
    find_session,
    list_sessions,
    make_link,
    open_session,
    take_link,
)
from headwater.store.people.users import (
    add_user,
    change_user,
    disable_user,
    find_user,
    first_admin,
    get_user,
    is_seeing_worth_noting,
    list_users,
    make_first_user,
    note_seen,
    only_user,
    remove_user,
    set_password,
    verify_password,
)
from tests.clock import NOON
from tests.rows import value_for

DAY = 86_400.0


def test_new_database_has_one_admin_with_number_one(store: Store) -> None:
    with store.writing() as connection:
        (user,) = list_users(connection)
        make_first_user(connection, NOON)
        assert list_users(connection) == [user] == [only_user(connection)]
    assert (user.id, user.name, user.role, user.has_password) == (1, "admin", "admin", False)


def test_add_user_folds_name_and_refuses_same_name_in_capitals(store: Store) -> None:
    with store.writing() as connection:
        user = add_user(connection, name=" Ｌi.Wei ", now=NOON, email="li@example.org")
        assert (user.name, user.role, user.email) == ("li.wei", "reader", "li@example.org")
        assert find_user(connection, "LI.WEI") == user == get_user(connection, user.id)
        assert only_user(connection) is None
        with pytest.raises(ConflictError, match=r"li\.wei is taken"):
            add_user(connection, name="LI.wei", now=NOON)


@pytest.mark.parametrize("name", ["", "  ", "a b", "a/b", "a:b", "x" * 65, "a\0", "<b>"])
def test_add_user_refuses_names_that_cannot_be_typed_or_parsed(store: Store, name: str) -> None:
    with store.writing() as connection, pytest.raises(InputError, match="is not a user name"):
        add_user(connection, name=name, now=NOON)


def test_change_user_keeps_what_is_not_given(store: Store) -> None:
    with store.writing() as connection:
        user = add_user(connection, name="li", now=NOON, email="li@example.org")
        changed = change_user(connection, user.id, preferences={"language": "zh"})
        assert (changed.email, changed.preferences) == ("li@example.org", {"language": "zh"})
        assert change_user(connection, user.id, email="", role="admin").email is None
        assert get_user(connection, user.id).is_admin
        for wrong in ({"role": "boss"}, {"email": "nowhere"}, {"preferences": {"x": "y" * 100_001}}):
            with pytest.raises(InputError):
                change_user(connection, user.id, **wrong)


def test_last_admin_is_not_removed_disabled_or_demoted(store: Store) -> None:
    with store.writing() as connection:
        reader = add_user(connection, name="li", now=NOON)
        with pytest.raises(InputError, match="the only admin"):
            remove_user(connection, 1)
        with pytest.raises(InputError, match="the only admin"):
            disable_user(connection, 1)
        with pytest.raises(InputError, match="the only admin"):
            change_user(connection, 1, role="reader")
        change_user(connection, reader.id, role="admin")
        remove_user(connection, 1)
        assert first_admin(connection).id == reader.id
        with pytest.raises(NotFoundError):
            get_user(connection, 1)


def test_verify_password_finds_enabled_user_with_right_password(store: Store) -> None:
    with store.writing() as connection:
        user = add_user(connection, name="li", now=NOON, password_hash=hash_password("correct horse"))
        assert verify_password(connection, "Li", "correct horse") == user
        assert verify_password(connection, "li", "correct horse ") is None
        assert verify_password(connection, "admin", "") is None, "no password is not an empty password"
        assert verify_password(connection, "unknown", "correct horse") is None
        disable_user(connection, user.id)
        assert verify_password(connection, "li", "correct horse") is None
        row = connection.execute(select(users).where(users.c.id == user.id)).one()
    assert row.password_hash.startswith("$argon2id$")


def test_hash_password_refuses_short_and_endless_ones() -> None:
    for wrong in ("1234567", "x" * 1001):
        with pytest.raises(InputError):
            hash_password(wrong)
    assert not is_password("garbage", "correct horse")
    assert not is_password(None, "no user has this password"), "the stand-in opens nothing"


def test_new_password_ends_all_sessions_but_one(store: Store) -> None:
    with store.writing() as connection:
        li = add_user(connection, name="li", now=NOON).id
        tokens = [open_session(connection, NewSession("account", user_id=li), NOON) for _ in range(3)]
        other = open_session(connection, NewSession("link", user_id=1), NOON)
        link = make_link(connection, NOON, li)
        kept = find_session(connection, tokens[0], b"", NOON)
        assert kept is not None and (kept.user_id, kept.user_name) == (li, "li")
        set_password(connection, li, hash_password("correct horse"), keep_session=kept.id)
        found = [find_session(connection, token, b"", NOON) is not None for token in (*tokens, other)]
        assert take_link(connection, link, NOON) is None
    assert found == [True, False, False, True]


def test_disabled_user_has_no_keys_sessions_or_app_passwords_that_work(store: Store) -> None:
    with store.writing() as connection:
        li = add_user(connection, name="li", now=NOON).id
        _, secret = add_key(connection, name="k", scopes=["read"], now=NOON, user_id=li)
        token = open_session(connection, NewSession("account", user_id=li), NOON)
        _, password = add_app_password(connection, user_id=li, name="phone", now=NOON)
        disable_user(connection, li)
        assert find_key(connection, secret, NOON) is None
        assert find_session(connection, token, b"", NOON) is None
        assert find_user_by_app_password(connection, "li", password) is None
        assert find_user_by_fever_key(connection, fever_key("li", password)) is None
        disable_user(connection, li, is_disabled=False)
        assert find_key(connection, secret, NOON) is not None
        assert find_user_by_app_password(connection, "li", password) is not None


def test_session_of_reader_lacks_admin_and_of_admin_has_it(store: Store) -> None:
    with store.writing() as connection:
        li = add_user(connection, name="li", now=NOON).id
        scopes = [
            set(session.scopes)
            for user_id in (1, li)
            if (token := open_session(connection, NewSession("account", user_id=user_id), NOON))
            and (session := find_session(connection, token, b"", NOON))
        ]
    assert scopes == [{"read", "refresh", "admin"}, {"read", "refresh", "edit"}]


def test_keys_and_sessions_of_another_user_are_not_found(store: Store) -> None:
    with store.writing() as connection:
        li = add_user(connection, name="li", now=NOON).id
        key, _ = add_key(connection, name="mine", scopes=["read"], now=NOON)
        open_session(connection, NewSession("link"), NOON)
        (session,) = list_sessions(connection, NOON)
        assert list_keys(connection, li) == [] == list_sessions(connection, NOON, li)
        with pytest.raises(NotFoundError):
            revoke_key(connection, key.id, NOON, user_id=li)
        with pytest.raises(NotFoundError):
            end_session(connection, session.id, li)
        assert list_keys(connection, 1) == [key]
        assert list_sessions(connection, NOON, 1) == [session]


def test_key_expires_and_reader_gets_no_admin_key(store: Store) -> None:
    with store.writing() as connection:
        li = add_user(connection, name="li", now=NOON).id
        key, secret = add_key(
            connection, name="k", scopes=["read"], now=NOON, user_id=li, expires_at=NOON + DAY
        )
        assert (key.user_name, key.role, key.expires_at) == ("li", "reader", NOON + DAY)
        assert find_key(connection, secret, NOON + DAY - 1) == key
        assert find_key(connection, secret, NOON + DAY) is None
        with pytest.raises(InputError, match="only a key of an admin"):
            add_key(connection, name="k", scopes=["admin"], now=NOON, user_id=li)
        with pytest.raises(InputError, match="in the future"):
            add_key(connection, name="k", scopes=["read"], now=NOON, expires_at=NOON)


def test_app_password_is_found_by_name_email_and_fever_key(store: Store) -> None:
    with store.writing() as connection:
        li = add_user(connection, name="li", now=NOON, email="Li@Example.org")
        made, password = add_app_password(connection, user_id=li.id, name=" phone ", now=NOON)
        assert made.name == "phone" and len(password) >= 24
        for name in ("li", "LI", "li@example.org"):
            assert find_user_by_app_password(connection, name, password) == li
        assert find_user_by_app_password(connection, "admin", password) is None
        assert find_user_by_app_password(connection, "li", password + "x") is None
        assert find_user_by_fever_key(connection, fever_key("li", password).upper()) == li
        assert find_user_by_fever_key(connection, fever_key("admin", password)) is None
        assert find_app_password(connection, password) == made
        assert is_app_password_use_worth_noting(made, NOON)
        note_app_password_use(connection, made.id, NOON)
        assert list_app_passwords(connection, li.id)[0].last_used_at == NOON
        with pytest.raises(NotFoundError):
            remove_app_password(connection, 1, made.id)
        remove_app_password(connection, li.id, made.id)
        assert find_user_by_app_password(connection, "li", password) is None
        with pytest.raises(InputError, match="needs a name"):
            add_app_password(connection, user_id=li.id, name=" ", now=NOON)


def test_invitation_makes_one_account_and_expires(store: Store) -> None:
    with store.writing() as connection:
        invitation, token = add_invitation(connection, role="reader", created_by=1, now=NOON, days=2)
        _, late = add_invitation(connection, role="admin", created_by=1, now=NOON, days=1)
        assert find_invitation(connection, token, NOON) == invitation
        user = accept_invitation(connection, token, name="li", now=NOON + DAY)
        assert user.role == "reader"
        for spent in (token, late, "hwi_x", "x" * 500):
            with pytest.raises(InputError, match="used before or has expired"):
                accept_invitation(connection, spent, name="wei", now=NOON + DAY)
        assert [each.used_by for each in list_invitations(connection)] == [None, user.id]
        remove_invitation(connection, invitation.id)
        with pytest.raises(NotFoundError):
            remove_invitation(connection, invitation.id)
        for wrong in ({"role": "boss", "days": 1}, {"role": "reader", "days": 0}):
            with pytest.raises(InputError):
                add_invitation(connection, created_by=1, now=NOON, **wrong)  # type: ignore[arg-type]


def test_taken_name_does_not_use_the_invitation_up(store: Store) -> None:
    with store.writing() as connection:
        _, token = add_invitation(connection, role="reader", created_by=1, now=NOON)
    with pytest.raises(ConflictError), store.writing() as connection:
        accept_invitation(connection, token, name="admin", now=NOON)
    with store.writing() as connection:
        assert accept_invitation(connection, token, name="li", now=NOON).name == "li"


def test_last_seen_is_noted_to_the_minute(store: Store) -> None:
    with store.writing() as connection:
        assert is_seeing_worth_noting(get_user(connection, 1), NOON)
        note_seen(connection, 1, NOON)
        user = get_user(connection, 1)
    assert not is_seeing_worth_noting(user, NOON + 59)
    assert is_seeing_worth_noting(user, NOON + 61)


def test_remove_user_removes_what_is_theirs_in_every_table_and_nothing_else(store: Store) -> None:
    """Tables are taken from the schema: one that refers to users is covered without being named here."""
    theirs = [
        table
        for table in metadata.sorted_tables
        if any(key.column.table is users and key.ondelete == "CASCADE" for key in table.foreign_keys)
    ]
    assert len(theirs) >= 5
    with store.writing() as connection:
        for name in ("li", "wei"):
            add_user(connection, name=name, now=NOON)
        for table in metadata.sorted_tables:
            if table is not users and (table in theirs or _is_needed(table, theirs)):
                for number in (2, 3):  # the numbers of the two users
                    connection.execute(insert(table).values({c.name: value_for(c, number) for c in table.c}))
        before = {
            table.name: set(connection.execute(select(table)).all()) for table in metadata.sorted_tables
        }
        remove_user(connection, 2)
        for table in metadata.sorted_tables:
            rows = set(connection.execute(select(table)).all())
            gone = before[table.name] - rows
            if table in theirs or table is users:
                assert len(gone) == 1, table.name
            else:
                assert gone == set(), table.name


def _is_needed(table: Table, theirs: list[Table]) -> bool:
    """Whether rows of `theirs` refer to rows of this table, directly or by others."""
    needing = [each for each in theirs if each is not table]
    referred = {key.column.table for each in needing for key in each.foreign_keys} - {users}
    more = {key.column.table for each in referred for key in each.foreign_keys} - {users}
    return table in referred | more

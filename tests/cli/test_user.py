"""People with an account, from the command line."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.store.core.database import Store
from headwater.store.people.keys import find_key
from headwater.store.people.users import find_user, verify_password
from tests.command import Headwater


@pytest.fixture
def headwater(tmp_path: Path, database_url: str) -> Iterator[Headwater]:
    yield Headwater(tmp_path, database_url)


def typed(headwater: Headwater, text: str, *arguments: str) -> tuple[int, str, str]:
    """Run a command with something on its standard input."""
    done = subprocess.run(
        [headwater.python, "-m", "headwater", *arguments],
        cwd=headwater.directory,
        env=headwater.environment,
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


def test_users_are_added_listed_and_given_passwords(headwater: Headwater, database_url: str) -> None:
    code, out, err = typed(headwater, "correct horse\n", "user", "add", "Li", "--email", "li@example.org")
    assert (code, out) == (0, "added user 2: li (reader)\n")
    assert "everyone signs in" in err, "what changes with the second user is said"
    assert typed(headwater, "short\n", "user", "add", "wei")[0] == 2
    listed = headwater.json("user", "list")
    assert [(user["name"], user["role"], user["has_password"]) for user in listed] == [
        ("admin", "admin", False),
        ("li", "reader", True),
    ]
    assert "li@example.org" in headwater.ok("user", "list")
    assert "is taken" in headwater.refused("user", "add", "LI", "--no-password")
    assert "there is no role boss" in headwater.refused("user", "add", "x", "--no-password", "--role", "boss")
    code, out, _ = typed(headwater, "another horse\n", "user", "passwd", "li")
    assert (code, out) == (0, "the password of li is set; their sessions have ended\n")
    with Store.open(database_url) as store, store.reading() as connection:
        assert verify_password(connection, "li", "another horse") is not None
    headwater.ok("user", "passwd", "li", "--remove")
    assert not headwater.json("user", "list")[1]["has_password"]


def test_user_is_disabled_enabled_and_removed_after_a_confirmation(headwater: Headwater) -> None:
    headwater.json("user", "add", "li", "--no-password")
    assert headwater.ok("user", "disable", "li") == "li is disabled\n"
    assert headwater.json("user", "list")[1]["is_disabled"]
    assert headwater.ok("user", "disable", "li", "--undo") == "li can sign in again\n"
    assert "the only admin" in headwater.refused("user", "disable", "admin")
    assert "the only admin" in headwater.refused("user", "remove", "admin", "--yes")
    code, _, err = typed(headwater, "", "user", "remove", "li")
    assert code == 2 and "--yes" in err
    assert headwater.json("user", "remove", "li", "--yes")["name"] == "li"
    assert [user["name"] for user in headwater.json("user", "list")] == ["admin"]
    assert "`headwater user list` shows them all" in headwater.refused("user", "disable", "li")


def test_invitation_link_stands_alone_on_the_output(headwater: Headwater) -> None:
    code, out, err = headwater.run("user", "invite", "--role", "admin", "--days", "1")
    assert code == 0
    assert out.startswith("http://127.0.0.1:8626/signup?invitation=hwi_") and out.count("\n") == 1
    assert "(admin)" in err
    made = headwater.json("user", "invite", HEADWATER_PUBLIC_URL="https://news.example/")
    assert made["link"] == f"https://news.example/signup?invitation={made['token']}"
    assert "1 to 365 days" in headwater.refused("user", "invite", "--days", "0")


def test_keys_and_links_can_be_of_a_user(headwater: Headwater, database_url: str) -> None:
    headwater.json("user", "add", "li", "--no-password")
    made = headwater.json("key", "add", "k", "--user", "LI", "--scope", "edit", "--days", "2")
    assert (made["user_name"], made["scopes"]) == ("li", ["edit"]) and made["expires_at"]
    assert "only a key of an admin" in headwater.refused(
        "key", "add", "k", "--user", "li", "--scope", "admin"
    )
    assert "there is no user x" in headwater.refused("key", "add", "k", "--user", "x")
    code, out, err = headwater.run("sign-in-link", "--user", "li")
    assert (code, "signs li in once" in err) == (0, True) and "/login?link=hwl_" in out
    with Store.open(database_url) as store, store.reading() as connection:
        key, user = find_key(connection, made["key"]), find_user(connection, "li")
    assert key is not None and user is not None and key.user_id == user.id

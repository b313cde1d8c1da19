"""The keys of the API from the command line."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command import Headwater


@pytest.fixture
def headwater(tmp_path: Path, database_url: str) -> Iterator[Headwater]:
    yield Headwater(tmp_path, database_url)


def test_keys_are_made_listed_and_revoked(headwater: Headwater) -> None:
    made = headwater.json("key", "add", "reader", "--scope", "read", "--scope", "refresh")
    assert made["key"].startswith(made["prefix"])
    assert made["scopes"] == ["read", "refresh"]
    code, out, err = headwater.run("key", "add", "another")
    assert (code, out.count("\n"), out[:3]) == (0, 1, "hw_"), "the key alone, for scripts"
    assert "it is not shown again" in err
    listed = headwater.json("key", "list")
    assert [key["scopes"] for key in listed] == [["read", "refresh"], ["read"]]
    assert all("key" not in key for key in listed)
    assert made["key"] not in headwater.ok("key", "list")
    assert headwater.ok("key", "revoke", "1") == "revoked key 1: reader\n"
    assert headwater.json("key", "list")[0]["revoked_at"]
    assert "there is no key 9" in headwater.refused("key", "revoke", "9")
    assert "there is no scope write; choose from read, refresh, admin" in headwater.refused(
        "key", "add", "x", "--scope", "write"
    )


def test_key_add_says_its_scopes_and_how_to_make_an_admin_key(headwater: Headwater) -> None:
    _, _, err = headwater.run("key", "add", "me")
    assert "with the scopes: read." in err
    assert "headwater key add NAME --scope admin" in err
    _, _, err = headwater.run("key", "add", "NAME", "--scope", "admin")
    assert "with the scopes: admin." in err
    assert "--scope admin" not in err

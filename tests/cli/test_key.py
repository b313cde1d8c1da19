"""The keys of the API from the command line, and the door that opens to nobody without one."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

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


def test_beyond_this_machine_nobody_is_served_without_a_key(headwater: Headwater) -> None:
    said = headwater.refused("serve", HEADWATER_HOST="0.0.0.0", HEADWATER_PORT="0")
    assert "listening on 0.0.0.0 lets others in" in said
    assert "headwater key add NAME --scope admin" in said
    headwater.ok("key", "revoke", str(headwater.json("key", "add", "gone")["id"]))
    assert "lets others in" in headwater.refused("serve", HEADWATER_HOST="0.0.0.0", HEADWATER_PORT="0")


def test_the_first_start_makes_a_key_and_shows_it_once(headwater: Headwater) -> None:
    secrets: list[str] = []
    for _ in range(2):
        process = headwater.start("serve", HEADWATER_PORT="0")
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        if not secrets:
            secrets.append(process.stdout.readline().split()[-1])
        answer = urlopen(
            Request(f"{address}api/collector/status", headers={"Authorization": f"Bearer {secrets[0]}"})
        )
        assert json.load(answer)["stats"]["total_sources"] == 0
        with pytest.raises(HTTPError) as refused:
            urlopen(f"{address}api/collector/status")
        assert refused.value.code == 401
        refused.value.close()
        process.terminate()
        rest, _ = process.communicate(timeout=40)
        assert "hw_" not in rest
    assert [key["scopes"] for key in headwater.json("key", "list")] == [["admin"]]

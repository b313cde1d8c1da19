"""Digests on the command line."""

from pathlib import Path

import pytest

from tests.command import Headwater


@pytest.fixture
def headwater(tmp_path: Path, database_url: str) -> Headwater:
    return Headwater(tmp_path, database_url)


def test_digest_is_added_previewed_changed_and_removed(headwater: Headwater) -> None:
    headwater.ok("target", "add", "team", "--webhook", "https://example.org/hook")
    added = headwater.json("digest", "add", "morning", "--schedule", "daily 07:30", "--to", "team", "--all")
    assert (added["name"], added["schedule"], added["targets"]) == ("morning", "daily 07:30", ["team"])
    assert "No item matches" in headwater.ok("digest", "preview", "morning")
    edited = headwater.json(
        *(
            "digest",
            "edit",
            "morning",
            "--zone",
            "Asia/Shanghai",
            "--write",
            "text",
            "--language",
            "zh",
            "--off",
        )
    )
    assert (edited["zone"], edited["is_enabled"]) == ("Asia/Shanghai", False)
    assert edited["config"] == {"write": "text", "languages": ["zh"]}
    assert headwater.json("digest", "list") == [edited]
    assert headwater.json("digest", "make", "morning")["due_at"] < edited["due_at"]
    assert headwater.json("digest", "issues") == []
    assert "cannot be read" in headwater.refused("digest", "edit", "morning", "--schedule", "sometimes")
    assert headwater.json("outlet", "add", "feed", "--digest", "morning")["digest"] == "morning"
    assert "the outlet feed publishes" in headwater.refused("digest", "remove", "morning")
    headwater.ok("outlet", "remove", "feed")
    headwater.ok("digest", "remove", "morning")
    assert "no digest morning" in headwater.refused("digest", "preview", "morning")
    assert "no issue 7" in headwater.refused("digest", "send", "7")

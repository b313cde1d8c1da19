"""The gallery on the command line."""

from pathlib import Path

import pytest

from tests.command import Headwater


@pytest.fixture
def headwater(tmp_path: Path, database_url: str) -> Headwater:
    return Headwater(tmp_path, database_url)


def test_entry_of_the_gallery_is_listed_and_used(headwater: Headwater) -> None:
    assert "full-text-feed" in headwater.ok("gallery", "list")
    assert "needs the field language" in headwater.refused("gallery", "use", "translated-feed")
    assert "made the outlet full-text-feed: /outlets/full-text-feed.xml" in headwater.ok(
        "gallery", "use", "full-text-feed"
    )
    made = headwater.json(
        "gallery", "use", "daily-digest", "--set", "email=ann@example.org", "--name", "mine"
    )
    assert (made["digests"], made["targets"]) == (["mine"], ["mine"])
    assert headwater.json("digest", "list")[0]["schedule"] == "daily 07:30"

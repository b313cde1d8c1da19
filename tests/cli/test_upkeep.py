"""Upkeep on demand: what a changed retention no longer keeps is deleted now, not within the hour."""

from pathlib import Path

import pytest

from tests.command import Headwater
from tests.origin import Origin


@pytest.fixture
def headwater(tmp_path: Path, database_url: str) -> Headwater:
    return Headwater(tmp_path, database_url)


def test_upkeep_deletes_at_once_what_a_new_retention_does_not_keep(
    headwater: Headwater, origin: Origin
) -> None:
    items = "".join(f"<item><guid>{n}</guid><title>Item {n}</title></item>" for n in range(5))
    origin.route("/feed", body=f"<rss version='2.0'><channel><title>One</title>{items}</channel></rss>")
    headwater.ok("source", "add", origin.url("/feed"))
    headwater.ok("collect")  # which has done the upkeep of this hour
    assert headwater.ok("upkeep") == "deleted 0 items and 0 visit records\n"
    kept = {"HEADWATER_RETENTION_ITEMS": "2"}
    assert headwater.json("upkeep", **kept) == {"items_deleted": 3, "visit_records_deleted": 0}
    assert len(headwater.json("items")) == 2
    assert headwater.ok("upkeep", **kept) == "deleted 0 items and 0 visit records\n"

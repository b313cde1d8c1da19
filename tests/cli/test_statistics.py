"""The statistics on the command line: of all sources, and of one."""

from pathlib import Path

import pytest

from tests.command import Headwater
from tests.origin import Origin
from tests.web.pages.test_sources import FEED


@pytest.fixture
def headwater(tmp_path: Path, database_url: str) -> Headwater:
    return Headwater(tmp_path, database_url)


def test_statistics_are_shown_for_people_and_programs(headwater: Headwater, origin: Origin) -> None:
    assert headwater.json("statistics")["hit_rate"] is None
    origin.route("/feed", body=FEED)
    origin.route("/bad", status=500)
    for path in ("/feed", "/bad"):
        headwater.ok("source", "add", origin.url(path), "--no-check", "--name", path[1:])
    assert headwater.run("collect")[0] == 0
    told = headwater.json("statistics")
    assert (told["total_sources"], told["total_checks"], told["total_hits"], told["hit_rate"]) == (
        2,
        2,
        1,
        0.5,
    )
    assert (told["due_sources"], told["failing_sources"], told["backoff_sources"]) == (0, 1, 1)
    assert told["by_cadence"]["P2"] == told["by_frequency"]["daily"] == 2
    shown = " ".join(headwater.ok("statistics").split())
    for words in (
        "Sources visited 2",
        "In back-off 1",
        "Visits that found new items 1 of 2 (50.0 %)",
        "Frequency: daily 2",
        "Cadence P2, every 60 min 2",
    ):
        assert words in shown
    chinese = headwater.ok("statistics", HEADWATER_LANGUAGE="zh")
    assert "发布频率：每天" in chinese and "Cadence" not in chinese


def test_explain_and_source_show_tell_its_statistics(headwater: Headwater, origin: Origin) -> None:
    origin.route("/feed", body=FEED)
    headwater.ok("source", "add", origin.url("/feed"), "--no-check", "--name", "One")
    assert headwater.json("explain", "One")["statistics"] is None
    headwater.ok("collect")
    assert headwater.json("explain", "One")["statistics"] == {
        "frequency_type": "daily",
        "cadence": "P2",
        "check_count": 1,
        "hit_count": 1,
        "hit_rate": 1.0,
        "backoff_until": None,
    }
    shown = " ".join(headwater.ok("source", "show", "One").split())
    assert "Publishes daily · cadence P2 · 100.0 % of visits found new items" in shown

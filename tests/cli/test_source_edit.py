"""Editing sources from the command line: one or many, by number, name or address; and bringing them back."""

from pathlib import Path

import pytest

from tests.cli.test_commands import FEED
from tests.command import Headwater
from tests.origin import Origin


@pytest.fixture
def headwater(tmp_path: Path, database_url: str) -> Headwater:
    return Headwater(tmp_path, database_url)


def test_edit_changes_name_folder_interval_policy_and_address(headwater: Headwater, origin: Origin) -> None:
    origin.route("/feed", body=FEED)
    origin.route("/moved", body=FEED)
    headwater.ok(
        "source", "add", origin.url("/feed"), "--name", "One", "--interval", "30", "--policy", "interval"
    )
    refused = headwater.refused("source", "edit", "One", "--url", origin.url("/missing"))
    assert "so nothing was changed" in refused and "404" in refused
    assert "there is no folder News" in headwater.refused("source", "edit", "One", "--folder", "News")
    changed = headwater.json(
        *("source", "edit", "one", "--name", "Uno", "--url", origin.url("/moved")),
        *("--new-folder", "News", "--interval", "15", "--config", "user=me"),
    )
    assert [changed[key] for key in ("name", "url", "folder", "policy")] == [
        "Uno",
        origin.url("/moved"),
        "News",
        "interval",
    ]
    assert changed["config"] == {"fetch_interval_minutes": 15, "user": "me"}
    assert headwater.json("collect")["visits"] == 1, "a new address is visited at once"
    cleared = headwater.json(
        *("source", "edit", origin.url("/moved"), "--folder", "", "--policy", "", "--interval", "0"),
        *("--unset", "user"),
    )
    assert [cleared[key] for key in ("folder", "policy", "config")] == [None, None, {}]
    assert headwater.ok("source", "edit", "1", "--name", "One") == "changed source 1: One\n"
    assert headwater.refused("source", "edit", "1").startswith("say what to change")


def test_many_are_listed_edited_paused_removed_and_brought_back(headwater: Headwater) -> None:
    for number in range(4):
        headwater.ok("source", "add", f"https://{number}.example/feed", "--no-check", "--name", f"N{number}")
    assert headwater.ok("source", "edit", "N0", "2", "--new-folder", "News") == "changed 2 sources\n"
    listed = headwater.json("source", "list", "--folder", "News")
    assert [each["name"] for each in listed] == ["N0", "N1"]
    assert headwater.ok("source", "edit", "--in-folder", "News", "--interval", "5") == "changed 2 sources\n"
    assert {
        each["config"]["fetch_interval_minutes"]
        for each in headwater.json("source", "list", "--folder", "News")
    } == {5}
    assert headwater.ok("source", "pause", "--search", "n3") == "paused source 4: N3\n"
    assert [
        each["id"] for each in headwater.json("source", "list", "--type", "rss", "--search", "EXAMPLE")
    ] == [1, 2, 3, 4]
    assert headwater.ok("source", "remove", "--folder", "News") == "removed 2 sources\n"
    assert headwater.json("items", "--source", "N0") == [], "of a source that was removed, too"
    assert headwater.ok("source", "list", "--folder", "News") == "No sources match.\n"
    assert headwater.ok("source", "restore", "N0", "N1") == "brought back 2 sources\n"
    assert len(headwater.json("source", "list", "--folder", "News")) == 2
    for arguments, message in (
        (("list", "--folder", "Nowhere"), "there is no folder Nowhere; the folders are: News"),
        (("list", "--state", "happy"), "there is no state happy; choose from"),
        (("list", "--type", "rrs"), "there is no source type rrs"),
        (("pause",), "say which sources"),
        (("pause", "N0", "--folder", "News"), "say which sources"),
        (("edit", "N0", "N1", "--name", "Both"), "a name, an address or a config is for one source"),
        (("show", "N9"), "there is no source N9"),
    ):
        assert message in headwater.refused("source", *arguments), arguments


def test_names_are_taken_wherever_numbers_are(headwater: Headwater, origin: Origin) -> None:
    origin.route("/feed", body=FEED)
    headwater.ok("source", "add", origin.url("/feed"), "--name", "River News")
    assert headwater.json("source", "show", "river news")["id"] == 1
    assert len(headwater.json("items", "--source", "River News")) == 2
    assert headwater.json("refresh", "River News") == {"queued": 1}
    assert headwater.json("collect", "--source", "River News")["visits"] == 1
    assert "River News" in headwater.ok("explain", "river news")
    assert headwater.json("runs", "list", "--source", "River News") == []
    headwater.ok("cursor", "create", "mine", "--source", "River News")
    assert headwater.json("cursor", "list")[0]["source_ids"] == [1]
    assert "there is no folder Nowhere" in headwater.refused("items", "--folder", "Nowhere")
    assert "there is no folder Nowhere" in headwater.refused("outlet", "add", "x", "--folder", "Nowhere")
    headwater.ok("source", "add", origin.url("/other"), "--no-check", "--name", "River News")
    ambiguous = headwater.refused("source", "pause", "River News")
    assert origin.url("/feed") in ambiguous and origin.url("/other") in ambiguous

"""Alerts on the command line."""

from pathlib import Path

import pytest

from tests.command import Headwater


@pytest.fixture
def headwater(tmp_path: Path, database_url: str) -> Headwater:
    return Headwater(tmp_path, database_url)


def test_rules_are_shown_and_changed(headwater: Headwater) -> None:
    headwater.ok("target", "add", "team", "--webhook", "https://example.org/hook")
    assert headwater.json("alert", "rules")["targets"] == []
    changed = headwater.json("alert", "rules", "--to", "team", "--quiet", "22:00-07:00", "--off", "lag")
    assert (changed["targets"], changed["quiet_from"], changed["off"]) == (["team"], "22:00", ["lag"])
    assert headwater.json("alert", "rules", "--to-none", "--all-kinds", "--quiet", "") == {
        **changed,
        **{"targets": [], "off": [], "quiet_from": "", "quiet_until": ""},
    }
    assert "no target unknown" in headwater.refused("alert", "rules", "--to", "unknown")
    assert headwater.json("alert", "list") == []
    assert "Nothing needs your attention." in headwater.ok("alert", "list", "--all")

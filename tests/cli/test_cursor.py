"""Cursors on the command line: what another program would do, and what a person sees."""

import json
import re
from pathlib import Path

import pytest

from tests.command import Headwater
from tests.origin import Origin


def feed(*titles: str) -> str:
    entries = "".join(f"<item><title>{title}</title><guid>{title}</guid></item>" for title in titles)
    return f'<rss version="2.0"><channel><title>One</title>{entries}</channel></rss>'


@pytest.fixture
def headwater(tmp_path: Path, database_url: str) -> Headwater:
    return Headwater(tmp_path, database_url)


def lines(text: str) -> list[tuple[int, str]]:
    return [(line["position"], line["title"]) for line in map(json.loads, text.splitlines())]


def test_a_program_reads_and_acknowledges(headwater: Headwater, origin: Origin) -> None:
    origin.route("/feed", body=feed("a", "b", "\u202ec"))
    made = headwater.json("cursor", "create", "mine", "--type", "rss")
    assert (made["position"], made["types"]) == (0, ["rss.feed"])
    headwater.ok("source", "add", origin.url("/feed"))
    found = lines(headwater.ok("cursor", "read", "mine", "--json"))
    assert [title for _, title in found] == ["a", "b", "\u202ec"]
    assert found == sorted(found)
    assert lines(headwater.ok("cursor", "read", "mine", "--json", "--limit", "1")) == found[:1]
    assert headwater.json("cursor", "ack", "mine", str(found[0][0]))["position"] == found[0][0]
    assert headwater.json("cursor", "list")[0]["waiting"] == 2
    assert lines(headwater.ok("cursor", "read", "mine", "--json", "--ack")) == found[1:]
    assert headwater.ok("cursor", "read", "mine", "--json") == ""
    origin.route("/feed", body=feed("d", "a"))
    headwater.ok("collect", "--all")
    assert [title for _, title in lines(headwater.ok("cursor", "read", "mine", "--json"))] == ["d"]
    headwater.ok("cursor", "reset", "mine", "--to", str(found[0][0]))
    assert len(lines(headwater.ok("cursor", "read", "mine", "--json"))) == 3


def test_for_people(headwater: Headwater) -> None:
    assert "headwater cursor create NAME" in headwater.ok("cursor", "list")
    assert "headwater cursor read mine" in headwater.ok("cursor", "create", "mine", "--search", "rain")
    listed = headwater.ok("cursor", "list")
    assert "search: rain" in listed and not re.search(r"[{}()\[\]']", listed), "words, not a record"
    assert "Nothing new" in headwater.ok("cursor", "read", "mine")
    assert headwater.ok("cursor", "remove", "mine") == "removed the cursor mine\n"
    assert "there is no cursor mine" in headwater.refused("cursor", "read", "mine")
    assert "there is no source 7" in headwater.refused("cursor", "create", "x", "--source", "7")
    headwater.ok("cursor", "create", "x")
    assert "returned only up to" in headwater.refused("cursor", "ack", "x", str(10**12))


def test_a_digest_tells_what_is_new_once(headwater: Headwater, origin: Origin) -> None:
    origin.route("/feed", body=feed("a &lt;b&gt;", "c"))
    headwater.ok("cursor", "create", "weekly")
    headwater.ok("source", "add", origin.url("/feed"))
    text = headwater.ok("cursor", "digest", "weekly", "--title", "This week")
    assert text.startswith("# This week\n\n## One\n\n- ")
    assert headwater.json("cursor", "digest", "weekly", "--ack")["count"] == 2
    assert headwater.ok("cursor", "digest", "weekly") == "", "for cron would mail it"
    assert "there is no cursor unknown" in headwater.refused("cursor", "digest", "unknown")

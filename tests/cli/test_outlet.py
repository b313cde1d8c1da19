"""`headwater outlet` and `headwater publish` as people use them."""

import io
from pathlib import Path

import feedparser
import pytest

from tests.command import Headwater
from tests.origin import Origin

FEED = """<rss version="2.0"><channel><title>River news</title>
<item><guid>1</guid><title>The river rises</title></item><item><guid>2</guid><title>今天的新闻</title></item>
</channel></rss>"""


@pytest.fixture
def headwater(tmp_path: Path, database_url: str) -> Headwater:
    return Headwater(tmp_path, database_url)


def test_from_a_source_to_a_feed_file(headwater: Headwater, origin: Origin) -> None:
    headwater.ok("source", "add", origin.route("/feed", body=FEED), "--folder", "News")
    assert [item["title"] for item in headwater.json("items", "--search", "新闻")] == ["今天的新闻"]
    assert "there is no folder Other" in headwater.refused("items", "--search", "river", "--folder", "Other")
    assert len(headwater.json("items", "--search", "-新闻")) == len(headwater.json("items")) - 1
    added = headwater.json(
        "outlet", "add", "river", "--title", "River", "--folder", "News", "--search", "river"
    )
    assert (added["shows"]["folders"], added["shows"]["search"]) == (["News"], "river")
    assert "river" in headwater.ok("outlet", "list")
    written = headwater.json("publish", "--directory", "site", "--base-url", "https://mine.example/feeds")
    assert [each["written"] for each in written] == [True] * 3
    feed = feedparser.parse(io.BytesIO((headwater.directory / "site" / "river.xml").read_bytes()))
    assert [entry.title for entry in feed.entries] == ["The river rises"]
    assert "https://mine.example/feeds/river.xml" in [link.href for link in feed.feed.links]
    assert not any(
        each["written"]
        for each in headwater.json(
            "publish", "--directory", "site", "--base-url", "https://mine.example/feeds"
        )
    )
    assert headwater.json("outlet", "edit", "river", "--limit", "1")["item_limit"] == 1
    headwater.ok("outlet", "remove", "river")
    assert headwater.json("outlet", "list") == []


def test_a_private_outlet_is_written_only_when_it_is_named(headwater: Headwater) -> None:
    headwater.ok("outlet", "add", "open")
    headwater.ok("outlet", "add", "mine", "--private")
    assert "everything" in headwater.ok("outlet", "list")
    assert {Path(each["path"]).stem for each in headwater.json("publish")} == {"open"}
    assert {Path(each["path"]).stem for each in headwater.json("publish", "mine")} == {"mine"}


def test_mistakes_are_one_clear_line(headwater: Headwater) -> None:
    assert "cannot be an outlet's name" in headwater.refused("outlet", "add", "My Feed")
    assert "did you mean" in headwater.refused("outlet", "add", "a", "--type", "rss.fed")
    assert "no source 7" in headwater.refused("outlet", "add", "a", "--source", "7")
    assert "no outlet nowhere" in headwater.refused("publish", "nowhere")
    assert "no format html" in headwater.refused("publish", "--format", "html")
    assert "nothing to look for" in headwater.refused("items", "--search", "--")

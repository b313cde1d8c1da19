"""Outlets publish what pipelines made: full texts, translations, summaries, transcripts, analyses, templates."""

import io
import json
from typing import Any

import feedparser
import pytest
from sqlalchemy import Connection

from headwater.errors import InputError, StepError
from headwater.model import Enclosure, Item, Result
from headwater.publish.outlets import check_outlet, render_outlet
from headwater.store.core.database import Store
from headwater.store.reading.outlets import Outlet, add_outlet, change_outlet, read_edition
from headwater.store.reading.results import NewResult, write_results
from headwater.store.reading.selection import Selection
from tests.clock import NOON
from tests.publish.test_outlets import store_items

EPISODE = Item(
    "https://a.example/1",
    url="https://a.example/1",
    title="The river",
    summary="<p>teaser</p>",
    content="<p>short</p>",
    published_at=NOON,
    enclosures=(Enclosure("https://a.example/1.mp3", "audio/mpeg", 99, duration_seconds=60.0),),
    extras={"season": 2, "episode": 3, "persons": [{"name": "Ann", "role": "host"}]},
)
PLAIN = Item("https://a.example/2", url="https://a.example/2", title="The hill", content="<p>hilly</p>")
RESULTS = (
    Result("full_text", body="<p>all of <b>it</b></p><script>x</script>", format="html", language="en"),
    Result("summary", body="In short.\n\nA <river>."),
    Result("translation", "zh", body="<p>河流</p>", format="html", language="zh", data={"title": "河"}),
    Result("translation", "de", body="der Fluss", language="de", data={"title": "Der Fluss"}),
    Result("transcript", body="hello there", data={"segments": []}),
    Result("analysis", data={"mood": "calm", "one_line_reason": ["water", "light"]}),
    Result("score", data={"score": 8, "reason": "x"}),
)


def fill(connection: Connection) -> None:
    """Two items, of which the first has every result."""
    store_items(connection, EPISODE, PLAIN)
    write_results(connection, [NewResult(1, 1, result, NOON + 5) for result in RESULTS])


def published(connection: Connection, *content: str, **more: Any) -> list[dict[str, Any]]:
    """The entries of an outlet with this content, as a feed parser reads them."""
    add_outlet(connection, Outlet("it", "It", content=content, **more), NOON)
    body = render_outlet(connection, read_edition(connection, "it"), "rss", "https://mine.example").body
    return list(feedparser.parse(io.BytesIO(body)).entries)


def body_of(entry: dict[str, Any]) -> str:
    return str(entry["content"][0]["value"])


@pytest.mark.parametrize(
    ("content", "title", "body"),
    [
        ("full_text", "The river", "<p>all of <b>it</b></p>"),
        ("summary", "The river", "<p>In short.</p>\n<p>A &lt;river&gt;.</p>"),
        ("translation:zh", "河", "<p>河流</p>"),
        ("translation:de", "Der Fluss", "<p>der Fluss</p>"),
        ("translation", "河", "<p>河流</p>"),
        ("transcript", "The river", "<p>hello there</p>"),
        ("analysis", "The river", "<p>Mood: calm<br />\nOne line reason: water, light</p>"),
    ],
)
def test_outlet_of_results_publishes_them_and_keeps_the_podcast(
    store: Store, content: str, title: str, body: str
) -> None:
    with store.writing() as connection:
        fill(connection)
        [entry] = published(connection, content)
    assert (entry["title"], body_of(entry)) == (title, body)
    [file] = entry["enclosures"]
    assert (file["href"], file["type"], file["length"]) == ("https://a.example/1.mp3", "audio/mpeg", "99")
    assert (entry["itunes_season"], entry["itunes_episode"], entry["itunes_duration"]) == ("2", "3", "60")


def test_outlet_falls_back_to_the_next_content(store: Store) -> None:
    with store.writing() as connection:
        fill(connection)
        first, second = published(connection, "full_text", "original")
    assert {body_of(first), body_of(second)} == {"<p>all of <b>it</b></p>", "<p>hilly</p>"}


def test_outlet_with_a_template_is_filled_for_each_item_and_sanitised(store: Store) -> None:
    template = (
        "<h2>{{ item.title | upper }}</h2>{% for key in results %}<i>{{ key }}</i>{% endfor %}"
        "{{ results['score'].data.score if 'score' in results else 'none' }}<script>x</script>"
    )
    with store.writing() as connection:
        fill(connection)
        entries = published(connection, "template", template=template)
    bodies = sorted(body_of(entry) for entry in entries)
    assert bodies[0] == "<h2>THE HILL</h2>none"
    assert bodies[1].startswith("<h2>THE RIVER</h2><i>full_text</i>")
    assert bodies[1].endswith("8")


def test_template_that_cannot_be_filled_says_so(store: Store) -> None:
    with store.writing() as connection:
        fill(connection)
        with pytest.raises(StepError, match=r"template: the template cannot be filled: .*no element 0"):
            published(connection, "template", template="{{ item.categories[0] }}")
    with pytest.raises(InputError, match="template: the template cannot be read"):
        check_outlet(Outlet("it", "It", content=("template",), template="{{ item"))


def test_outlet_of_the_best_has_items_by_score_and_tag(store: Store) -> None:
    with store.writing() as connection:
        fill(connection)
        write_results(connection, [NewResult(2, 1, Result("score", data={"score": 3}), NOON)])
        write_results(connection, [NewResult(2, 1, Result("tags", data=["hills"]), NOON)])
        [best] = published(connection, "original", selection=Selection(min_score=7.0))
        assert best["title"] == "The river"
        change_outlet(connection, "it", NOON, selection=Selection(tags=("Hills",)))
        assert read_edition(connection, "it").item_ids == (2,)
        change_outlet(
            connection, "it", NOON, selection=Selection(has=("score",)), content=("summary", "transcript")
        )
        assert read_edition(connection, "it").item_ids == (1,)


def test_edition_has_another_tag_once_a_result_is_replaced(store: Store) -> None:
    with store.writing() as connection:
        fill(connection)
        add_outlet(connection, Outlet("it", "It", content=("summary",)), NOON)
        add_outlet(connection, Outlet("plain", "Plain"), NOON)
        before, plain = read_edition(connection, "it"), read_edition(connection, "plain")
        assert before.changed_at == NOON + 5
        write_results(connection, [NewResult(1, 1, Result("summary", body="Shorter."), NOON + 60)])
        after = read_edition(connection, "it")
        assert after.tag != before.tag
        assert after.changed_at == NOON + 60
        assert read_edition(connection, "plain").tag == plain.tag, "nothing of it has changed"


def test_json_feed_of_a_translation_says_its_language(store: Store) -> None:
    with store.writing() as connection:
        fill(connection)
        add_outlet(connection, Outlet("zh", "中文", content=("translation:zh",)), NOON)
        body = render_outlet(connection, read_edition(connection, "zh"), "json", "https://mine.example").body
    [item] = json.loads(body)["items"]
    assert (item["title"], item["content_html"], item["language"]) == ("河", "<p>河流</p>", "zh")
    assert item["attachments"][0]["url"] == "https://a.example/1.mp3"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"content": ()}, "publishes something"),
        ({"content": ("poem",)}, "there is no result poem"),
        ({"content": ("template",)}, "needs a template"),
        ({"template": "{{ item.title }}"}, "no other outlet takes one"),
    ],
)
def test_what_is_wrong_with_the_content_of_an_outlet_is_said(
    store: Store, fields: dict[str, Any], problem: str
) -> None:
    with store.writing() as connection, pytest.raises(InputError, match=problem):
        add_outlet(connection, Outlet("it", "It", **fields), NOON)

"""Outlets, made in the browser."""

import html

import pytest

from headwater.model import Item
from headwater.store.core.database import Store
from tests.publish.test_outlets import read_back, store_items
from tests.web.pages.conftest import Visitor


def test_an_outlet_is_made_read_and_removed(visitor: Visitor, store: Store) -> None:
    with store.writing() as connection:
        store_items(connection, Item("a", title="kept"), folder="News")
        store_items(connection, Item("b", title="other"), name="two")
    page = visitor.send("/outlets", page="/outlets/new", name="news", folder="News", title="<b>News</b>").text
    assert "added outlet news" in page
    assert "&lt;b&gt;News" in page
    assert len(read_back(visitor.client.get("/outlets/news.xml").content, "rss")) == 1
    assert "removed outlet news" in visitor.send("/outlets/news/remove", page="/outlets").text
    assert visitor.client.get("/outlets/news.xml").status_code == 404
    assert visitor.send("/outlets/news/remove").status_code == 404


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"name": "No Name"}, "cannot be an outlet's name"),
        ({"name": "a", "source_names": "x"}, "there is no source x"),
        ({"name": "a", "source": "9"}, "no source 9"),
        ({"name": "a", "folder": "Nowhere"}, "there is no folder Nowhere"),
        ({"name": "a", "item_limit": "many"}, "many is not a number"),
        ({"name": "a", "type": "rss.fed"}, "did you mean"),
    ],
)
def test_what_is_wrong_is_said_on_the_page(visitor: Visitor, fields: dict[str, str], problem: str) -> None:
    answer = visitor.send("/outlets", page="/outlets/new", **fields)
    assert answer.status_code == 400
    assert problem in html.unescape(answer.text)


def test_an_outlet_is_edited_with_sources_picked_by_name(visitor: Visitor, store: Store) -> None:
    with store.writing() as connection:
        store_items(connection, Item("a", title="kept"), folder="News")
        store_items(connection, Item("b", title="other"), name="two")
    visitor.send("/outlets", page="/outlets/new", name="mine", title="Mine", source="1")
    page = visitor.see("/outlets/mine/edit")
    assert 'name="source" value="1" checked' in page and 'name="source" value="2">' in page
    fields = {"title": "Other", "source": "2", "item_limit": "7", "search": "-kept"}
    changed = visitor.send("/outlets/mine/edit", page="/outlets/mine/edit", **fields).text
    assert "changed outlet mine" in changed and "sources: two; search: -kept" in changed
    feed = visitor.client.get("/outlets/mine.xml")
    assert "other" in feed.text and "kept" not in feed.text
    refused = visitor.send("/outlets/mine/edit", page="/outlets/mine/edit", source_names="unknown")
    assert refused.status_code == 400 and "there is no source unknown" in refused.text


def test_outlet_is_previewed_before_it_is_stored(visitor: Visitor, store: Store) -> None:
    with store.writing() as connection:
        store_items(connection, Item("a", title="kept", content="<p>of the river</p>"), folder="News")
        store_items(connection, Item("b", title="other"), name="two")
    shown = visitor.send("/outlets/preview", page="/outlets/new", name="news", folder="News").text
    assert "kept" in shown and "of the river" in shown and "other" not in shown
    wrong = visitor.send("/outlets/preview", page="/outlets/new", folder="Nowhere")
    assert (wrong.status_code, "there is no folder Nowhere" in wrong.text) == (200, True)
    assert visitor.client.get("/outlets/news.xml").status_code == 404

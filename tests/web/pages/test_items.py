"""Items: found by search, read safely, and compared with what they said before."""

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from headwater.formats.compare import compare
from headwater.model import Item
from headwater.store.core.database import Store
from headwater.store.people.keys import add_key
from headwater.store.reading.items import ItemChange, write_items
from headwater.web.pages.items import ITEMS_ON_A_PAGE
from tests.clock import NOON
from tests.publish.test_outlets import store_items
from tests.web.pages.conftest import Visitor

EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>"


def test_the_list_is_searched_filtered_and_turned(visitor: Visitor, store: Store) -> None:
    with store.writing() as connection:
        store_items(connection, Item("river", title="The river rises"), folder="News")
        many = [Item(f"n{n}", title=f"number {n}", published_at=NOON - n) for n in range(ITEMS_ON_A_PAGE + 5)]
        store_items(connection, *many, name="many")
    assert "The river rises" in visitor.see("/items")
    assert "number 1" not in visitor.see("/items?search=river")
    assert "The river rises" in visitor.see("/items?folder=News")
    assert "The river rises" not in visitor.see("/items?source=2")
    assert "nothing to look for" in visitor.see("/items?search=--")
    seen: list[str] = []
    path = "/items?source=2"
    while path:
        page = visitor.see(path)
        seen += re.findall(r"<bdi>(number \d+)</bdi>", page)
        following = re.search(r'href="([^"]+)" rel="next"', page)
        path = following[1].replace("&amp;", "&") if following else ""
    assert seen == [f"number {n}" for n in range(ITEMS_ON_A_PAGE + 5)]


def test_an_item_is_shown_beside_the_list(visitor: Visitor, store: Store) -> None:
    with store.writing() as connection:
        store_items(connection, Item("a", title="The river rises", content="<p>Water</p>"))
    page = visitor.see("/items?item=1")
    assert page.count("<h1") == 2 and "<p>Water</p>" in page


def test_a_hostile_item_is_shown_harmless(visitor: Visitor, store: Store) -> None:
    with store.writing() as connection:
        store_items(
            connection,
            Item(
                "1",
                url="javascript:alert(1)",
                title=EVIL,
                author=EVIL,
                content=f"<p>kept</p>{EVIL}<a href='javascript:alert(1)'>x</a><a href='/more'>more</a>",
                image_url="javascript:alert(1)",
                categories=(EVIL,),
            ),
        )
    for path in ("/items", "/items/1", "/items?search=alert"):
        page = visitor.see(path)
        assert not re.search(r"<script>alert|<[^>]*onerror|javascript:", page), path
    assert "<p>kept</p>" in visitor.see("/items/1")


def test_what_changed_is_shown(visitor: Visitor, store: Store) -> None:
    with store.writing() as connection:
        store_items(connection, Item("a", title="Flood", content="The <b>river</b> rises"))
        change = ItemChange(
            "changed", Item("a", title="Flood", content="The river falls"), b"a", b"a", (), b"2", NOON
        )
        write_items(connection, [(1, (change,), NOON)])
    page = visitor.see("/items/1")
    assert "<del>rises</del><ins>falls</ins>" in page
    assert "Version 2" in page
    assert "第 2 版" in visitor.see("/items/1", **{"Accept-Language": "zh"})
    assert visitor.client.get("/items/99").status_code == 404


def test_item_page_tells_language_comments_and_that_it_was_processed(visitor: Visitor, store: Store) -> None:
    item = Item("a", title="Flut", content="Der Fluss steigt", language="de", comments_count=3)
    with store.writing() as connection:
        store_items(connection, replace(item, comments_url="https://one.example/a#talk"))
        connection.exec_driver_sql("UPDATE items SET status = 'ANALYZED'")
    page = visitor.see("/items/1")
    assert '<h1 lang="de" tabindex="-1">' in page and '<div class="body" lang="de">' in page
    assert '<abbr title="Language">de</abbr>' in page
    assert re.search(r'<a href="https://one\.example/a#talk"[^>]*>3 comments</a>', page)
    assert ">processed</span>" in page and "ANALYZED" not in page


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_comparison_holds_both_texts(old: str, new: str) -> None:
    runs = compare(old, new)
    assert "".join(text for kind, text in runs if kind != "come") == old
    assert "".join(text for kind, text in runs if kind != "gone") == new


def test_the_reader_may_load_pictures_and_nothing_else_may(visitor: Visitor, store: Store) -> None:
    with store.writing() as connection:
        store_items(connection, Item("a", title="a"))
        add_key(connection, name="k", scopes=["read"], now=NOON)
    policy = visitor.client.get("/items/1").headers["content-security-policy"]
    assert "img-src 'self' http: https: data:" in policy
    assert "script-src 'self';" in policy
    assert "img-src 'self';" in visitor.client.get("/sources").headers["content-security-policy"]

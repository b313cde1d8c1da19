"""Pages, outlets and the API answer for items and sources with every field present, absent and odd."""

import math
from typing import Any
from uuid import uuid4

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import update

from headwater.markup import LONGEST_TEXT
from headwater.model import Enclosure, Item
from headwater.publish.outlets import CUT
from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from headwater.store.core.tables import items, sources
from headwater.store.people.keys import add_key
from headwater.store.reading.items import ItemChange, write_items
from headwater.store.reading.outlets import Outlet, add_outlet
from headwater.store.reading.selection import Selection
from tests.clock import NOON
from tests.examples import examples
from tests.web.pages.conftest import Visitor

ODD = st.sampled_from(
    [
        "",
        " ",
        "<",
        "<b",
        "&#0;",
        "\x00",
        "\ud800",
        "%",
        "{{ 7 * 7 }}",
        "javascript:alert(1)",
        "https://[",
        "http://x/?",
    ]
)
TEXT = st.one_of(ODD, st.text(max_size=40), st.just("<div>" * 300))
MAYBE = st.none() | TEXT
TIME = st.none() | st.sampled_from([0.0, -1.0, NOON, 253_402_300_799.0]) | st.floats(-1e10, 1e11)
FILES = st.builds(
    Enclosure,
    url=TEXT,
    media_type=MAYBE,
    length=st.none() | st.integers(-1, 2**70),
    title=MAYBE,
    duration_seconds=st.none() | st.floats(0, 1e9),
)
ITEMS = st.builds(
    Item,
    external_id=TEXT,
    url=MAYBE,
    title=TEXT,
    author=MAYBE,
    summary=MAYBE,
    content=MAYBE,
    published_at=TIME,
    updated_at=TIME,
    language=MAYBE,
    image_url=MAYBE,
    comments_url=MAYBE,
    categories=st.lists(TEXT, max_size=3).map(tuple),
    enclosures=st.lists(FILES, max_size=3).map(tuple),
    score=st.none() | st.integers(-5, 5),
    comments_count=st.none() | st.integers(0, 5),
    cut=st.booleans(),
)
# What another program, or an older one of ours, may have left there.
EXTRAS = st.fixed_dictionaries(
    {},
    optional={
        "enclosures": st.sampled_from(
            ["x", [1, None, {}], [{"url": "https://x.example/a.mp3"}], [{"url": 1, "more": 2}]]
        ),
        "categories": st.sampled_from([{}, "x", [1, None, "a"]]),
        "image_url": st.sampled_from([1, {}, None]),
        "comments_url": st.sampled_from([1, {}, None]),
    },
)


def store_item(store: Store, item: Item, extra: dict[str, Any] | None = None) -> int:
    key = uuid4().bytes
    with store.writing() as connection:
        write_items(connection, [(1, (ItemChange("new", item, key, key, (), key, NOON),), NOON)])
        found = connection.execute(items.select().where(items.c.id_hash == key)).one()
        if extra is not None:
            connection.execute(
                update(items).where(items.c.id == found.id).values(extra=orjson.dumps(extra).decode())
            )
        old = ItemChange("changed", Item("x", title="now", summary=item.content), key, key, (), b"2", NOON)
        if found.id % 3 == 0:
            write_items(connection, [(1, (old,), NOON + 1)])
    return int(found.id)


@pytest.fixture
def furnished(store: Store) -> Store:
    with store.writing() as connection:
        add_source(connection, name="odd", type="rss.feed", url="https://odd.example/", now=NOON)
        add_outlet(connection, Outlet("all", "All", Selection()), NOON)
    return store


@pytest.fixture
def asking(visitor: Visitor, furnished: Store) -> Visitor:
    """A client that looks at pages and asks the API."""
    with furnished.writing() as connection:
        _, secret = add_key(connection, name="k", scopes=["read", "admin"], now=NOON)
    visitor.client.headers["Authorization"] = f"Bearer {secret}"
    return visitor


def paths(item_id: int) -> list[str]:
    outlets = [f"/outlets/all.{extension}" for extension in ("xml", "atom", "json")]
    api = [
        f"/api/items/{item_id}",
        "/api/items?full=true",
        f"/api/items/{item_id}/versions",
        "/api/raw-items",
    ]
    return ["/", "/items", f"/items/{item_id}", "/items?search=now", "/sources/1", *outlets, *api]


@settings(
    max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(item=ITEMS, extra=st.none() | EXTRAS, chinese=st.booleans())
def test_pages_of_any_item_answer(
    furnished: Store, asking: Visitor, item: Item, extra: dict[str, Any] | None, chinese: bool
) -> None:
    item_id = store_item(furnished, item, extra)
    headers = {"Accept-Language": "zh" if chinese else "en"}
    for path in paths(item_id):
        assert asking.client.get(path, headers=headers).status_code in (200, 404), path


SOURCE_FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "name": TEXT.filter(lambda text: "\x00" not in text and "\ud800" not in text),
        "title": st.none() | st.sampled_from(["", "<b>", "{{ 1 }}"]),
        "site_url": st.none() | st.sampled_from(["", "javascript:alert(1)", "https://["]),
        "folder": st.none() | st.sampled_from(["", "a/b", "<b>"]),
        "status": st.sampled_from(["ok", "needs_attention", "paused", "error", "retired"]),
        "next_fetch_at": TIME.filter(lambda at: at is None or math.isfinite(at)),
        "last_fetched_at": TIME,
        "last_error": st.none() | st.sampled_from(["", "<b>", "x" * 3000]),
        "plan_reason": st.sampled_from(["{}", '{"postponed": 60}', '{"odd": null}', '{"policy": "?"}']),
        "schedule_enabled": st.booleans(),
        "is_active": st.booleans(),
        "type": st.sampled_from(["rss.feed", "no.such_type"]),
        "policy": st.none() | st.sampled_from(["interval", "adaptive", "cadence", "odd"]),
        "config": st.sampled_from(["{}", '{"odd": 1}', '{"fetch_interval_minutes": 5}']),
    },
)


@settings(
    max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(fields=SOURCE_FIELDS)
def test_pages_of_any_source_answer(furnished: Store, asking: Visitor, fields: dict[str, Any]) -> None:
    with furnished.writing() as connection:
        connection.execute(update(sources).values(**{"fetch_count": 1, **fields}))
    for path in ("/", "/sources", "/sources/1", "/items", "/api/sources", "/api/sources/1"):
        assert asking.client.get(path).status_code == 200, path


def test_page_and_outlet_of_a_giant_item_say_that_it_is_cut(furnished: Store, asking: Visitor) -> None:
    # As it was stored before there was a limit.
    item_id = store_item(furnished, Item("1", title="Giant", content="<div>" * 1_500_000))
    page = asking.see(f"/items/{item_id}")
    assert "parts of it are left out" in page
    assert "部分内容已省略" in asking.see(f"/items/{item_id}", **{"Accept-Language": "zh"})
    for extension in ("xml", "atom"):
        assert "部分内容已省略" in asking.see(f"/outlets/all.{extension}")
    assert len(asking.see(f"/api/items/{item_id}")) < 2 * LONGEST_TEXT


def test_outlet_of_many_large_items_stays_small_and_names_them_all(furnished: Store, asking: Visitor) -> None:
    for number in range(15):
        store_item(furnished, Item(str(number), title=f"Large {number}", content=f"<p>{'x ' * 240_000}</p>"))
    document = asking.see("/outlets/all.json")
    assert len(document) < 8_000_000
    assert all(f"Large {number}" in document or "now" in document for number in range(15))
    assert CUT[4:30] in document

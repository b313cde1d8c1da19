"""One shape for each noun: the command line, the API, outlets and steps show the same fields with the same values."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from headwater.config import load_settings
from headwater.formats.feeds.parse import parse
from headwater.model import Enclosure, Item, Result
from headwater.publish.outlets import render_outlet
from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from headwater.store.core.tables import sources
from headwater.store.people.keys import add_key
from headwater.store.pipelines.runs import claim_named
from headwater.store.pipelines.starting import start_runs
from headwater.store.pipelines.templates import NewTemplate, add_template
from headwater.store.reading.cursors import create_cursor
from headwater.store.reading.items import ItemChange, write_items
from headwater.store.reading.outlets import Outlet, add_outlet, read_edition
from headwater.store.reading.results import NewResult, write_results
from headwater.store.reading.selection import Selection
from headwater.views.items import ItemView, ListedItemView, item_json
from headwater.views.sources import SourceView, WholeSourceView
from headwater.web.app import create_app
from tests.clock import NOON
from tests.command import Headwater

ITEM = Item(
    "https://one.example/1",
    url="https://one.example/1",
    title="The river rises",
    author="Ann Walker",
    summary="<p>In short</p>",
    content="<p>At length</p>",
    published_at=NOON,
    updated_at=NOON + 60,
    language="de",
    image_url="https://one.example/1.png",
    comments_url="https://one.example/1#comments",
    categories=("weather", "local"),
    enclosures=(Enclosure("https://one.example/1.mp3", "audio/mpeg", 9, "Listen", 12.0),),
    score=120,
    comments_count=7,
    cut=True,
    extras={"season": 2, "persons": [{"name": "Ben"}]},
)
OF_RESULTS = {"results", "result_keys", "pipeline_score", "tags"}
RESULTS = (
    Result("summary", body="It rises.", language="en"),
    Result("score", data={"score": 7.5, "reason": "Near."}),
    Result("tags", data=["Weather"]),
)
STEP = {
    "step_type": "filter_content",
    "is_critical": True,
    "config": {},
    "timeout_seconds": None,
    "retries": 0,
}


@pytest.fixture
def headwater(tmp_path: Path, database_url: str) -> Headwater:
    command = Headwater(tmp_path, database_url)
    command.environment["HEADWATER_DATA_DIR"] = str(tmp_path)
    return command


@pytest.fixture
def api(store: Store, headwater: Headwater) -> Iterator[Callable[[str], Any]]:
    """What the API returns to a key that may do everything, in the same environment as the command's."""
    settings = load_settings(directory=headwater.directory, environment=headwater.environment)
    with store.writing() as connection:
        _, secret = add_key(connection, name="me", scopes=["admin"], now=time.time())
    headers = {"Authorization": f"Bearer {secret}"}
    with TestClient(create_app(store, settings), base_url="http://127.0.0.1:8626", headers=headers) as client:

        def get(path: str) -> Any:
            answer = client.get(path)
            assert answer.status_code == 200, answer.text
            return answer.json()

        yield get


@pytest.fixture
def furnished(store: Store) -> None:
    """One of each noun, the item with a value in every field."""
    assert all(getattr(ITEM, name) not in (None, (), "", False) for name in Item.__dataclass_fields__)
    with store.writing() as connection:
        source = add_source(
            connection,
            name="One",
            type="rss.feed",
            url="https://one.example/feed",
            now=NOON,
            folder="News",
            config={"user": "me", "password": "secret", "fetch_interval_minutes": 30},
        )
        values = {"title": "One says", "site_url": "https://one.example/", "language": "de", "fetch_count": 3}
        connection.execute(sources.update().values(**values, last_fetched_at=NOON))
        change = ItemChange("new", ITEM, b"k", b"k", (), b"h", NOON)
        write_items(connection, [(source.id, (change,), NOON)])
        write_results(connection, [NewResult(1, 1, each, NOON) for each in RESULTS])
        add_outlet(connection, Outlet("news", "News", Selection(folders=("News",))), NOON)
        add_outlet(connection, Outlet("mine", "Mine"), NOON, private=True)
        create_cursor(connection, "mine", now=NOON, selection=Selection(folders=("News",)))
        template = add_template(connection, NewTemplate("Read", (STEP,)), NOON)
        start_runs(connection, template, [1], NOON)


@pytest.mark.usefixtures("furnished")
def test_item_is_the_same_on_the_command_line_in_the_api_and_in_cursors(
    headwater: Headwater, api: Callable[[str], Any]
) -> None:
    whole = api("/api/items/1")
    assert list(whole) == list(ItemView.model_fields)
    for name in ("language", "score", "comments_count", "image_url", "comments_url", "title", "cut"):
        assert whole[name] == getattr(ITEM, name), name
    assert (whole["pipeline_score"], whole["tags"]) == (7.5, ["weather"])
    assert whole["result_keys"] == list(whole["results"]) == ["summary", "score", "tags"]
    assert (whole["categories"], whole["extra"]) == (list(ITEM.categories), ITEM.extras)
    assert headwater.json("items") == [whole]
    assert api("/api/items?full=true")["items"] == [whole]
    (placed,) = api("/api/cursors/mine/items")["items"]
    assert placed == {**whole, "position": placed["position"]}
    assert json.loads(headwater.ok("cursor", "read", "mine", "--json")) == placed
    (listed,) = api("/api/items")["items"]
    assert listed == {name: whole[name] for name in ListedItemView.model_fields}


@pytest.mark.usefixtures("furnished")
def test_item_is_the_same_for_steps(store: Store, api: Callable[[str], Any]) -> None:
    with store.writing() as connection:
        run: Any = claim_named(connection, [1], now=NOON, lease_until=NOON + 60)[1]
    assert item_json(run.item) == api("/api/items/1")


@pytest.mark.usefixtures("furnished")
def test_item_has_its_older_names_in_raw_items(api: Callable[[str], Any]) -> None:
    whole = api("/api/items/1")
    (raw,) = api("/api/raw-items")["items"]
    older = {"fetched_at": "first_seen_at", "dedup_key": "external_id"}
    metadata = raw.pop("metadata")
    assert raw.pop("source_type") == "rss"
    assert raw == {name: whole[older.get(name, name)] for name in raw}
    extra = whole["extra"]
    assert metadata == {name: whole.get(name, extra.get(name)) for name in metadata}
    shown_elsewhere = {"source_type", "summary", "item_at", "version", "status", "date_invented", "extra"}
    shown_elsewhere |= OF_RESULTS
    shown_elsewhere |= {older.get(name, name) for name in raw}
    assert metadata.keys() == (whole.keys() - shown_elsewhere) | extra.keys()


@pytest.mark.usefixtures("furnished")
@pytest.mark.parametrize("format", ["rss", "atom", "json"])
def test_item_keeps_its_values_in_outlets(store: Store, api: Callable[[str], Any], format: str) -> None:
    whole = api("/api/items/1")
    with store.reading() as connection:
        body = render_outlet(connection, read_edition(connection, "news"), format).body
    (entry,) = parse(body).entries
    for name, value in {
        "title": entry.title,
        "url": entry.link,
        "external_id": entry.id,
        "author": entry.author,
        "summary": entry.summary,
        "language": entry.language,
        "image_url": entry.image,
        "comments_url": entry.comments_url,
        "comments_count": entry.comments_count,
        "categories": list(entry.categories),
        "extra": entry.extras,
    }.items():
        assert value == whole[name], name
    assert [file.url for file in entry.enclosures] == [file["url"] for file in whole["enclosures"]]
    assert (entry.content or "").startswith(whole["content"]), "it says that parts were left out"


@pytest.mark.usefixtures("furnished")
def test_every_field_of_an_item_is_in_json_feed_outlets(store: Store, api: Callable[[str], Any]) -> None:
    whole = api("/api/items/1")
    with store.reading() as connection:
        (entry,) = json.loads(render_outlet(connection, read_edition(connection, "news"), "json").body)[
            "items"
        ]
    record = entry["_headwater"]["item"]
    assert record == {name: whole[name] for name in record}
    has_a_key = {"external_id", "url", "title", "author", "summary", "content", "published_at", "updated_at"}
    has_a_key |= {
        "language",
        "image_url",
        "comments_url",
        "comments_count",
        "categories",
        "enclosures",
        "extra",
    }
    assert whole.keys() - record.keys() == has_a_key | OF_RESULTS | {"status"}


@pytest.mark.usefixtures("furnished")
def test_source_is_the_same_on_the_command_line_and_in_the_api(
    headwater: Headwater, api: Callable[[str], Any]
) -> None:
    whole = api("/api/sources/1")
    assert list(whole) == list(WholeSourceView.model_fields)
    assert (whole["config"]["password"], whole["fetch_interval_minutes"]) == ("***", 30)
    assert (whole["title"], whole["language"], whole["fetch_count"]) == ("One says", "de", 3)
    assert headwater.json("source", "show", "1") == whole
    listed = api("/api/sources")["sources"]
    assert headwater.json("source", "list") == listed
    assert listed == [{name: whole[name] for name in SourceView.model_fields}]
    (item,) = api("/api/items?full=true")["items"]
    assert (item["source_id"], item["source_name"], item["source_type"]) == (
        whole["id"],
        whole["name"],
        whole["type"],
    )
    assert headwater.json("explain", "1") == api("/api/sources/1/plan")


@pytest.mark.usefixtures("furnished")
def test_other_nouns_are_the_same_on_the_command_line_and_in_the_api(
    headwater: Headwater, api: Callable[[str], Any]
) -> None:
    assert headwater.json("runs", "show", "1") == api("/api/runs/1")
    assert headwater.json("runs", "list") == api("/api/runs")["runs"]
    assert headwater.json("pipeline", "list") == api("/api/templates")["templates"]
    assert headwater.json("outlet", "list") == api("/api/outlets")["outlets"]
    (cursor,) = headwater.json("cursor", "list")
    assert cursor.pop("waiting") == 1
    assert [cursor] == api("/api/cursors")["cursors"]
    assert headwater.json("statistics") == api("/api/collector/statistics")
    assert headwater.json("types", "rss") == api("/api/types/rss")
    assert headwater.json("key", "list") == api("/api/keys")["keys"]
    assert headwater.json("session", "list") == api("/api/sessions")["sessions"]
    assert headwater.json("config") == api("/api/settings")["settings"]

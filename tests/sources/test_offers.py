"""Files and APIs that are pasted are recognised by what they answer, and offered with what they would yield."""

from typing import Any

import pytest

from headwater.collect.context import read_visit_context
from headwater.config import load_settings
from headwater.errors import VisitError
from headwater.sources.adding import add_what_is_there, read_new_source
from headwater.sources.discovery import FoundFeed, discover
from headwater.store.core.database import Store
from tests.collectors.test_activitypub import Server as Outbox
from tests.collectors.test_files import COUNCIL, ROWS, Bucket, calendar, directory
from tests.collectors.test_graphql import Server as GraphqlServer
from tests.fake_services import as_json
from tests.fetch import door
from tests.formats.test_graphql import SCHEMA
from tests.formats.test_tables import ROWS as SHEET
from tests.formats.test_tables import STRINGS, STYLES, workbook
from tests.origin import Answer, Origin, Received


async def find(url: str) -> list[FoundFeed]:
    async with door() as fetcher:
        return await discover(url, fetcher)


@pytest.mark.parametrize(
    ("path", "body", "content_type", "kind", "items"),
    [
        ("/events", calendar(COUNCIL.replace("2026", "2099")), "text/calendar", "file.calendar", 0),
        ("/list.csv", ROWS, "text/csv", "file.table", 2),
        ("/list.csv", ROWS, "application/octet-stream", "file.table", 2),
        ("/export", ROWS, "text/plain", "file.table", 2),
        ("/list.tsv", ROWS.replace(",", "\t"), "text/plain", "file.table", 2),
        (
            "/book.xlsx",
            workbook(SHEET, strings=STRINGS, styles=STYLES),
            "application/octet-stream",
            "file.table",
            2,
        ),
        ("/pub/", directory("/pub/", "a.iso", "b.iso"), "text/html", "file.listing", 2),
        ("/api/posts", b'{"data": [{"title": "One", "url": "/1"}]}', "application/json", "api.json", 1),
    ],
)
async def test_what_an_address_answers_is_offered(
    origin: Origin, path: str, body: Any, content_type: str, kind: str, items: int
) -> None:
    url = origin.route(path, body=body, content_type=content_type)
    (found,) = await find(url)
    assert (found.url, found.type, found.how, found.items, found.problem) == (
        url,
        kind,
        "answer",
        items,
        None,
    )


async def test_outbox_and_bucket_are_offered(origin: Origin) -> None:
    outbox = Outbox(origin)
    outbox.notes = [1, 2, 3]
    (found,) = await find(outbox.outbox)
    assert (found.type, found.items) == ("api.activitypub", 3)
    bucket = Bucket(origin)
    bucket.keys = ["a-1", "b-2"]
    (found,) = await find(bucket.url)
    assert (found.type, found.items, found.title) == ("file.listing", 2, "data")


async def test_lists_of_a_graphql_schema_are_offered(origin: Origin) -> None:
    server = GraphqlServer(origin)
    server.posts = [1, 2]
    posts = {"id": "p1", "title": "Post 1", "webUrl": "/p/1", "publishedAt": "2026-11-01T00:00:00Z"}

    def answer(request: Received) -> Answer:
        if b"__schema" in request.body:
            return as_json({"data": SCHEMA})
        if b"latest(" in request.body:
            return as_json({"errors": [{"message": "not for you"}]})
        edges = {"edges": {"edges": [{"node": posts}]}}
        return as_json({"data": edges if b"edges {" in request.body else {"posts": {"nodes": [posts]}}})

    url = origin.route("/graphql", answer)
    found = await find(url)
    assert [(each.type, each.choice, each.items) for each in found] == [
        ("api.graphql", "posts", 1),
        ("api.graphql", "edges", 1),
    ]


async def test_graphql_that_tells_no_schema_is_not_offered(origin: Origin) -> None:
    url = origin.route(
        "/graphql", as_json({"errors": [{"message": "introspection is disabled"}]}, status=400)
    )
    with pytest.raises(VisitError):
        await find(url)


async def test_page_with_a_feed_is_not_taken_for_something_else(origin: Origin) -> None:
    page = "<title>Index of trees</title><link rel='alternate' type='application/rss+xml' href='/feed'>"
    url = origin.route("/", body=page.replace("Index of", "About"), content_type="text/html")
    origin.route("/feed", body="<rss><channel><title>One</title><item><guid>1</guid></item></channel></rss>")
    (found,) = await find(url)
    assert found.type == "rss.feed"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("hello, world", "text/plain"),
        ("a,b\n1,2\n", "text/plain"),
        ("[1, 2]", "application/json"),
        ("BEGIN:VCARD", "text/vcard"),
    ],
)
async def test_other_answers_are_not_offered(origin: Origin, body: str, content_type: str) -> None:
    url = origin.route("/x", body=body, content_type=content_type)
    with pytest.raises(VisitError):
        await find(url)


async def test_pasted_file_is_added_as_what_it_is(store: Store, origin: Origin) -> None:
    url = origin.route("/list.csv", body=ROWS, content_type="text/csv")
    async with door() as fetcher:
        context = await read_visit_context(store, load_settings(environment={}), fetcher)
        added = await add_what_is_there(read_new_source(url), context)
    assert (added.type, added.url) == ("file.table", url)

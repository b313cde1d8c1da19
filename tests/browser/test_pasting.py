"""What a newcomer pastes into the box is recognised, shown with its first items and added, whatever it is."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import in_language, running
from tests.collectors.test_activitypub import Server as Outbox
from tests.collectors.test_files import Bucket, calendar, directory
from tests.fake_services import as_json
from tests.formats.test_graphql import SCHEMA
from tests.formats.test_tables import ROWS, STRINGS, STYLES, workbook
from tests.origin import Answer, Origin, Received

MARKET = "UID:1\r\nSUMMARY:Weekly market\r\nDTSTART:20200107T090000Z\r\nRRULE:FREQ=WEEKLY"
LIST = "title,link,date\nFirst report,/1,2026-11-01\nSecond report,/2,2026-11-02\n"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    allowed = {"HEADWATER_ALLOW_HOSTS": "127.0.0.1", "HEADWATER_HOST_SPACING_SECONDS": "0"}
    with running(tmp_path_factory.mktemp("pasted"), "serve", COLLECTOR_TICK="1", **allowed) as address:
        yield address


def table(origin: Origin) -> tuple[str, str]:
    return origin.route("/reports.csv", body=LIST, content_type="text/csv"), "Second report"


def sheet(origin: Origin) -> tuple[str, str]:
    book = workbook(ROWS, strings=STRINGS, styles=STYLES)
    return origin.route("/reports.xlsx", body=book, content_type="application/octet-stream"), "One two"


def events(origin: Origin) -> tuple[str, str]:
    return origin.route("/town.ics", body=calendar(MARKET), content_type="text/calendar"), "Weekly market"


def files(origin: Origin) -> tuple[str, str]:
    return origin.route(
        "/pub/", body=directory("/pub/", "one.iso", "two.iso"), content_type="text/html"
    ), "two.iso"


def bucket(origin: Origin) -> tuple[str, str]:
    made = Bucket(origin)
    made.keys = ["logs-1", "logs-2"]
    return made.url, "logs-2"


def outbox(origin: Origin) -> tuple[str, str]:
    made = Outbox(origin)
    made.notes = [1, 2]
    return made.outbox, "Note 2"


def api(origin: Origin) -> tuple[str, str]:
    data = {"data": [{"id": 1, "title": "From an API", "url": "/1", "created_at": "2026-11-01T00:00:00Z"}]}
    return origin.route("/api/posts", as_json(data)), "From an API"


def graphql(origin: Origin) -> tuple[str, str]:
    post = {"id": "p1", "title": "From a query", "webUrl": "/p/1", "publishedAt": "2026-11-01T00:00:00Z"}

    def answer(request: Received) -> Answer:
        if b"__schema" in request.body:
            return as_json({"data": SCHEMA})
        return as_json({"data": {"posts": {"nodes": [post]}}})

    return origin.route("/graphql", answer), "From a query"


@pytest.mark.parametrize("make", [table, sheet, files, bucket, outbox, api, graphql, events])
def test_what_is_pasted_is_offered_with_its_items_and_added(
    page: Page, address: str, publisher: Origin, make: object
) -> None:
    t = in_language("en")
    url, title = make(publisher)  # type: ignore[operator]
    page.goto(f"{address}/sources/add")
    page.get_by_role("searchbox").fill(url)
    page.get_by_role("button", name=t("Find feeds")).click()
    offer = page.locator("ul.offers li").first
    expect(offer.get_by_role("checkbox")).to_be_checked()
    expect(offer.locator(".preview")).to_contain_text(title)
    page.get_by_role("button", name=t("Add source")).click()
    expect(page.get_by_role("status")).to_contain_text("added source")
    expect(page.get_by_role("link", name=title).first).to_be_visible()

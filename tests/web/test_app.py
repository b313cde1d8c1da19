"""The first page: true numbers, two languages, and nothing a publisher writes can run in it."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import event
from starlette.testclient import TestClient

from headwater.config import Settings
from headwater.model import Item, Plan
from headwater.store.collecting.queue import settle_batch
from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from headwater.store.reading.items import ItemChange, write_items
from headwater.web.app import create_app
from headwater.web.chart import bars
from headwater.web.pages.frame import LANGUAGE_COOKIE, http_only
from tests.clock import NOON, FakeClock
from tests.store.collecting.test_queue import claim, done, make

EVIL = "<script>alert('x')</script>\"'"


@pytest.fixture
def browser(store: Store, settings: Settings, clock: FakeClock) -> Iterator[TestClient]:
    with TestClient(create_app(store, settings, clock=clock), base_url="http://127.0.0.1:8626") as client:
        yield client


def fill(store: Store, **fields: str) -> None:
    with store.writing() as connection:
        source = add_source(connection, name=EVIL, type="rss.feed", url="https://one.example/", now=NOON)
        item = Item("1", title=EVIL, **fields)  # type: ignore[arg-type]
        write_items(connection, [(source.id, (ItemChange("new", item, b"k", b"k", (), b"h", NOON),), NOON)])


def test_the_page_shows_what_is_there(browser: TestClient, store: Store) -> None:
    welcome = browser.get("/").text
    assert "What would you like to follow?" in welcome and 'name="url"' in welcome, (
        "an empty one says how to begin"
    )
    fill(store, url="https://one.example/1")
    page = browser.get("/").text
    assert '<a href="/items/1">' in page
    assert "1 in all" in page
    assert "Nothing needs your attention" in page


def test_a_page_reads_no_contents(browser: TestClient, store: Store) -> None:
    fill(store, url="https://one.example/1", content="long")
    asked: list[str] = []

    def listen(connection: object, cursor: object, statement: str, *more: object) -> None:
        asked.append(statement)

    event.listen(store.engine, "before_cursor_execute", listen)
    browser.get("/live")
    assert not [each for each in asked if re.search(r"\b(content|summary|extra|config|policy_state)\b", each)]


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "JaVaScRiPt:alert(1)"])
def test_nothing_a_publisher_writes_can_run(browser: TestClient, store: Store, url: str) -> None:
    fill(store, url=url)
    for path in ("/", "/live"):
        page = browser.get(path).text
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert" in page
        assert url not in page


def test_the_next_visit_says_why(browser: TestClient, store: Store, clock: FakeClock) -> None:
    with store.writing() as connection:
        make(connection, "one")
        (source,) = claim(connection)
        plan = Plan(clock() + 7200, {"policy": "interval", "interval": 7200.0, "decided_by": "policy"})
        settle_batch(connection, [done(source, clock(), plan)])
    page = browser.get("/sources").text
    assert "Fixed interval of 2 h; next visit" in page.replace("120 min", "2 h")
    assert "固定间隔" in browser.get("/sources", headers={"Accept-Language": "zh"}).text


def test_both_languages(browser: TestClient, store: Store) -> None:
    fill(store)
    assert "Newest items" in browser.get("/").text
    assert "最新条目" in browser.get("/", headers={"Accept-Language": "zh-CN"}).text
    assert 'lang="zh-CN"' in browser.get("/?language=zh").text
    assert "最新条目" in browser.get("/").text, "the switch is remembered"
    assert "最新条目" in browser.get("/live").text


def test_every_answer_carries_the_content_policy(browser: TestClient) -> None:
    for path in ("/", "/live", "/static/style.css", "/healthz", "/nowhere"):
        answer = browser.get(path)
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_another_host_name_is_refused(browser: TestClient) -> None:
    """A hostile page may resolve its own name to loopback; the name gives it away."""
    assert browser.get("/", headers={"Host": "evil.example"}).status_code == 400
    assert browser.get("/", headers={"Host": "localhost:8626"}).status_code == 200


@pytest.mark.parametrize(
    ("host", "names"),
    [
        ("127.0.0.1", ["127.0.0.1:8626", "localhost", "[::1]:8626"]),
        ("127.0.0.2", ["127.0.0.2:8626", "127.0.0.2", "localhost:1"]),
        ("::1", ["[::1]:8626", "[::1]", "localhost:8626"]),
    ],
)
def test_it_answers_under_the_address_it_listens_on(
    store: Store, settings: Settings, host: str, names: list[str]
) -> None:
    browser = TestClient(create_app(store, replace(settings, host=host)))
    for name in names:
        assert browser.get("/healthz", headers={"Host": name}).status_code == 200, name
    for name in ("127.0.0.3", "evil.example", "", "[::2]"):
        refused = browser.get("/healthz", headers={"Host": name})
        assert refused.status_code == 400, name
        assert "default-src 'none'" in refused.headers["content-security-policy"]


@pytest.mark.parametrize("wanted", ["中", "fr", "zh; Domain=x", "zh\r\nX: y", ""])
def test_unknown_language_is_not_remembered(browser: TestClient, wanted: str) -> None:
    answer = browser.get("/", params={"language": wanted})
    assert answer.status_code == 200
    assert 'lang="en"' in answer.text
    assert LANGUAGE_COOKIE not in answer.headers.get("set-cookie", "")


def test_an_error_of_our_own_is_answered_safely(
    store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError("hush")

    monkeypatch.setattr("headwater.web.pages.home.read_now", fail)
    browser = TestClient(
        create_app(store, settings), base_url="http://127.0.0.1", raise_server_exceptions=False
    )
    answer = browser.get("/")
    assert answer.status_code == 500
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "hush" not in answer.text


def test_only_web_addresses_become_links() -> None:
    assert http_only("HTTPS://one.example") == "HTTPS://one.example"
    assert http_only("javascript:alert(1)") is None
    assert http_only(None) is None


def test_a_chart_is_scaled_and_escaped() -> None:
    svg = bars([0, 5, 10], title="<b>")
    assert "<title>&lt;b&gt;</title>" in svg
    assert svg.count("<rect") == 2, "nothing is drawn for zero"
    assert 'height="60.0"' in svg
    assert "<rect" not in bars([], title="")

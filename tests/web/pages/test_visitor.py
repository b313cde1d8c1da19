"""Only who may look looks, only who may act acts, and only from a page of ours."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from headwater.config import Settings
from headwater.store.database import Store
from headwater.store.keys import add_key, revoke_key
from headwater.web.api.auth import MOST_FAILURES
from headwater.web.app import create_app
from headwater.web.pages.visitor import SESSION_COOKIE, SESSION_SECONDS, own_path
from tests.clock import NOON, FakeClock

SITE = "https://news.example"


@pytest.fixture
def outside(store: Store, settings: Settings, clock: FakeClock) -> Iterator[TestClient]:
    """A browser somewhere else."""
    app = create_app(store, replace(settings, host="0.0.0.0"), clock=clock)
    with TestClient(app, base_url=SITE, follow_redirects=False) as client:
        yield client


@pytest.fixture
def key(store: Store) -> str:
    with store.writing() as connection:
        return add_key(connection, name="me", scopes=["read"], now=NOON)[1]


def token_in(page: str) -> str:
    found = re.search(r'name="form_token" value="([^"]+)"', page)
    assert found
    return found[1]


def sign_in(browser: TestClient, secret: str, next: str = "/sources?x=1") -> int:
    token = token_in(browser.get("/login").text)
    answer = browser.post("/login", data={"form_token": token, "secret": secret, "next": next})
    if answer.status_code == 303:
        assert answer.headers["location"] == own_path(next)
    return answer.status_code


@pytest.mark.parametrize("path", ["/", "/live"])
def test_a_page_sends_strangers_to_the_door_and_back(outside: TestClient, key: str, path: str) -> None:
    answer = outside.get(path)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/login?next=%2F")
    assert sign_in(outside, key) == 303
    assert outside.get(path).status_code == 200
    assert outside.get("/login?next=//evil.example").headers["location"] == "/"


def test_a_wrong_key_is_told_so_and_too_many_are_not_looked_at(
    outside: TestClient, key: str, clock: FakeClock
) -> None:
    statuses = [sign_in(outside, "hw_guess") for _ in range(MOST_FAILURES + 1)]
    assert statuses == [401] * MOST_FAILURES + [429]
    assert sign_in(outside, key) == 429
    clock.advance(61)
    assert sign_in(outside, key) == 303


def test_a_session_ends_with_its_key_its_time_and_its_owner(
    outside: TestClient, store: Store, key: str, clock: FakeClock
) -> None:
    sign_in(outside, key)
    token = token_in(outside.get("/").text)
    assert outside.post("/logout", data={"form_token": token}).status_code == 303
    assert outside.get("/").status_code == 303
    sign_in(outside, key)
    clock.advance(SESSION_SECONDS + 1)
    assert outside.get("/").status_code == 303
    sign_in(outside, key)
    with store.writing() as connection:
        revoke_key(connection, 1, NOON)
    assert outside.get("/").status_code == 303


def test_a_session_cannot_be_planted_or_made_up(outside: TestClient, key: str) -> None:
    before = outside.get("/login").cookies[SESSION_COOKIE]
    sign_in(outside, key)
    after = outside.cookies[SESSION_COOKIE]
    assert before.partition(".")[0] != after.partition(".")[0], "signing in gives a number of its own"
    payload, _, signature = after.partition(".")
    for made_up in (
        f"{payload}.{signature[::-1]}",
        f"{payload[:-2]}AA.{signature}",
        payload,
        ".",
        "x.y",
        "é.ß",
    ):
        outside.cookies.clear()
        answer = outside.get("/", headers={b"cookie": f"{SESSION_COOKIE}={made_up}".encode()})
        assert answer.status_code == 303, made_up


def test_the_cookie_is_for_us_alone(outside: TestClient) -> None:
    cookie = outside.get("/login").headers["set-cookie"].lower()
    for part in ("httponly", "samesite=lax", "secure", "path=/"):
        assert part in cookie


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_form_of_another_site_is_refused(outside: TestClient, key: str, headers: dict[str, str]) -> None:
    sign_in(outside, key)
    token = token_in(outside.get("/").text)
    assert outside.post("/logout", data={"form_token": token}, headers=headers).status_code == 403
    assert outside.post("/logout", data={"form_token": "guess"}).status_code == 403
    assert outside.post("/logout").status_code == 403
    assert outside.get("/").status_code == 200


def test_a_token_is_good_for_its_own_visitor_only(outside: TestClient, key: str) -> None:
    sign_in(outside, key)
    token = token_in(outside.get("/").text)
    outside.cookies.clear()
    sign_in(outside, key)
    assert outside.post("/logout", data={"form_token": token}).status_code == 403


def test_a_password_closes_this_machines_pages_too(store: Store, settings: Settings, key: str) -> None:
    app = create_app(store, replace(settings, password="correct horse"))
    with TestClient(app, base_url="http://127.0.0.1:8626", follow_redirects=False) as browser:
        assert browser.get("/").status_code == 303
        assert sign_in(browser, "wrong horse") == 401
        assert sign_in(browser, "correct horse") == 303
        assert browser.get("/").status_code == 200
    # Without the password in the settings, a session that was opened by it is worth nothing.
    with TestClient(
        create_app(store, replace(settings, host="0.0.0.0")),
        base_url="http://127.0.0.1:8626",
        cookies=browser.cookies,
        follow_redirects=False,
    ) as later:
        assert later.get("/").status_code == 303


@pytest.mark.parametrize(
    "text",
    [
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "",
        None,
        "/a\r\nb",
        "x",
    ],
)
def test_nobody_is_sent_elsewhere(text: str | None) -> None:
    assert own_path(text, "/home") == "/home"
    assert own_path("/sources?x=1", "/home") == "/sources?x=1"


def test_what_is_not_there_is_a_page_in_the_visitors_language(outside: TestClient) -> None:
    answer = outside.get("/nowhere", headers={"Accept-Language": "zh"})
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert "/nowhere" in answer.text
    assert "/sources" not in answer.text, "a stranger is not shown around"

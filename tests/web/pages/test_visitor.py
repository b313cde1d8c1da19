"""Only who may look looks, only who may act acts, and only from a page of ours."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from headwater.config import Settings
from headwater.store.core.database import Store
from headwater.store.core.tables import sessions as session_table
from headwater.store.core.tables import sign_in_links
from headwater.store.people.keys import add_key, revoke_key
from headwater.store.people.sessions import (
    LINK_SECONDS,
    SESSION_SECONDS,
    list_sessions,
    make_link,
)
from headwater.web.app import create_app
from headwater.web.pages.visitor import SESSION_COOKIE, own_path
from headwater.web.sign_in_limits import MOST_FAILURES, MOST_PASSWORD_FAILURES
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


def test_a_wrong_key_is_told_so_and_a_right_one_works_from_a_limited_address(
    outside: TestClient, key: str
) -> None:
    statuses = [sign_in(outside, "hw_guess") for _ in range(MOST_FAILURES + 1)]
    assert statuses == [401] * MOST_FAILURES + [429]
    assert sign_in(outside, key) == 303


@pytest.fixture
def guarded(store: Store, settings: Settings, clock: FakeClock) -> Iterator[TestClient]:
    """A browser on this machine, which a password keeps out."""
    app = create_app(store, replace(settings, password="correct horse"), clock=clock)
    with TestClient(app, base_url="http://127.0.0.1:8626", follow_redirects=False) as client:
        yield client


def test_wrong_passwords_cannot_be_guessed_on_by_changing_a_header(
    guarded: TestClient, clock: FakeClock
) -> None:
    guarded.get("/login")
    statuses = []
    for number in range(MOST_FAILURES + 5):
        guarded.headers["X-Forwarded-For"] = f"192.0.2.{number}"
        statuses.append(sign_in(guarded, "wrong horse"))
    assert statuses == [401] * MOST_FAILURES + [429] * 5
    assert sign_in(guarded, "correct horse") == 429, "a guesser who is right now does not learn of it"
    clock.advance(61)
    assert sign_in(guarded, "correct horse") == 303


def test_guessing_locks_no_key_and_no_session_out(guarded: TestClient, key: str) -> None:
    sign_in(guarded, "correct horse")
    mine = guarded.cookies[SESSION_COOKIE]
    guarded.cookies.clear()
    for _ in range(MOST_PASSWORD_FAILURES // MOST_FAILURES + MOST_FAILURES):
        sign_in(guarded, "wrong horse")
    guarded.cookies.clear()
    guarded.cookies.set(SESSION_COOKIE, mine)
    assert guarded.get("/").status_code == 200
    guarded.cookies.clear()
    assert sign_in(guarded, key) == 303


def test_a_wrong_password_is_called_that(guarded: TestClient, outside: TestClient) -> None:
    def said(browser: TestClient) -> str:
        token = token_in(browser.get("/login").text)
        return browser.post("/login", data={"form_token": token, "secret": "wrong horse"}).text

    assert "the password or key is wrong" in said(guarded)
    assert "Password or API key" in said(guarded)
    assert "this API key is unknown or revoked" in said(outside)
    assert "Password or API key" not in outside.get("/login").text, "there is no password to type in"


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


def test_a_cookie_is_worthless_after_signing_out(outside: TestClient, key: str) -> None:
    sign_in(outside, key)
    stolen = outside.cookies[SESSION_COOKIE]
    token = token_in(outside.get("/").text)
    outside.post("/logout", data={"form_token": token})
    outside.cookies.clear()
    outside.cookies.set(SESSION_COOKIE, stolen)
    assert outside.get("/").status_code == 303


@pytest.mark.parametrize("password", ["battery staple", None])
def test_a_new_password_ends_the_sessions_of_the_old_one_and_of_links(
    guarded: TestClient, store: Store, settings: Settings, key: str, clock: FakeClock, password: str | None
) -> None:
    def open_session(secret: str) -> str:
        guarded.cookies.clear()
        assert sign_in(guarded, secret) == 303
        return guarded.cookies[SESSION_COOKIE]

    with store.writing() as connection:
        link = make_link(connection, clock())
    cookies = [open_session(secret) for secret in ("correct horse", link, key)]

    def statuses(password: str | None) -> list[int]:
        changed = replace(settings, password=password, host="0.0.0.0")
        with TestClient(create_app(store, changed, clock=clock), follow_redirects=False) as browser:
            found = []
            for cookie in cookies:
                browser.cookies.clear()
                browser.cookies.set(SESSION_COOKIE, cookie)
                found.append(browser.get("/").status_code)
            return found

    assert statuses("correct horse") == [200, 200, 200]
    assert statuses(password) == [303, 303, 200]


def test_a_link_signs_in_once_and_in_time(outside: TestClient, store: Store, clock: FakeClock) -> None:
    with store.writing() as connection:
        links = [make_link(connection, clock()) for _ in range(2)]
        assert not {link.encode() for link in links} & set(
            connection.execute(sign_in_links.select()).scalars()
        )
    for _ in range(2):
        page = outside.get(f"/login?link={links[0]}")
        assert (page.status_code, links[0] in page.text) == (200, True), "looking at it does not use it up"
    assert sign_in(outside, links[0], "/settings") == 303
    assert "/settings/keys" in outside.get("/settings").text, "it may do everything"
    outside.cookies.clear()
    assert sign_in(outside, links[0]) == 401
    clock.advance(LINK_SECONDS)
    assert sign_in(outside, links[1]) == 401


def test_sessions_are_listed_and_ended_on_the_settings_page(
    outside: TestClient, store: Store, clock: FakeClock
) -> None:
    with store.writing() as connection:
        admin = add_key(connection, name="boss", scopes=["admin"], now=NOON)[1]
    sign_in(outside, admin)
    lost = outside.cookies[SESSION_COOKIE]
    outside.cookies.clear()
    outside.headers["User-Agent"] = "Phone/1"
    sign_in(outside, admin)
    page = outside.get("/settings").text
    assert page.count("/settings/sessions/") == 2
    assert page.count("this browser") == 1
    assert "Phone/1" in page
    with store.reading() as connection:
        ids = [session.id for session in list_sessions(connection, clock())]
    ended = outside.post(f"/settings/sessions/{min(ids)}/end", data={"form_token": token_in(page)})
    assert ended.status_code == 303
    assert outside.get("/").status_code == 200
    outside.cookies.clear()
    outside.cookies.set(SESSION_COOKIE, lost)
    assert outside.get("/").status_code == 303


def test_a_session_cannot_be_planted_made_up_or_read_from_the_database(
    outside: TestClient, store: Store, key: str
) -> None:
    before = outside.get("/login").cookies[SESSION_COOKIE]
    sign_in(outside, key)
    after = outside.cookies[SESSION_COOKIE]
    assert before != after, "signing in gives a new token"
    with store.reading() as connection:
        stored = connection.execute(session_table.select()).one()
    assert after.encode() not in {value for value in stored if isinstance(value, bytes)}
    for made_up in (before, after[:-1], stored.token_hash.hex(), ".", "x" * 5000, "é"):
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
def test_links_send_no_visitor_elsewhere(text: str | None) -> None:
    assert own_path(text, "/home") == "/home"
    assert own_path("/sources?x=1", "/home") == "/sources?x=1"


def test_what_is_not_there_is_a_page_in_the_visitors_language(outside: TestClient) -> None:
    answer = outside.get("/nowhere", headers={"Accept-Language": "zh"})
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert "/nowhere" in answer.text
    assert "/sources" not in answer.text, "a stranger is not shown around"

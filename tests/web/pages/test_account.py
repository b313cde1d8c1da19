"""The pages for signing up, one's own account, and users."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from headwater.config import Settings
from headwater.store.core.database import Store
from headwater.store.people.app_passwords import find_user_by_app_password
from headwater.store.people.invitations import add_invitation
from headwater.store.people.keys import add_key, find_key
from headwater.store.people.passwords import hash_password
from headwater.store.people.users import add_user, get_user, list_users
from headwater.web.app import create_app
from headwater.web.pages.visitor import SESSION_COOKIE
from tests.clock import FakeClock

SITE = "http://127.0.0.1:8626"
PASSWORD = " correct horse "


@pytest.fixture
def app(store: Store, settings: Settings, clock: FakeClock) -> FastAPI:
    return create_app(store, settings, clock=clock)


@pytest.fixture
def browser(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, base_url=SITE, follow_redirects=False) as client:
        yield client


@pytest.fixture
def li(store: Store, clock: FakeClock) -> int:
    with store.writing() as connection:
        return add_user(connection, name="li", now=clock(), password_hash=hash_password(PASSWORD)).id


def send(browser: TestClient, page: str, action: str, **fields: Any) -> Any:
    found = re.search(r'name="form_token" value="([^"]+)"', browser.get(page).text)
    assert found, page
    return browser.post(action, data={"form_token": found[1], **fields})


def sign_in(browser: TestClient, name: str = "li", secret: str = PASSWORD) -> Any:
    return send(browser, "/login", "/login", name=name, secret=secret)


def test_single_user_sees_no_accounts_in_menus_and_signs_in_nowhere(browser: TestClient) -> None:
    page = browser.get("/").text
    assert "/account" not in page and 'href="/users"' not in page and "Sign out" not in page
    assert 'href="/users"' in browser.get("/settings").text, "there is a way to a second user"
    assert "Account: <bdi>admin</bdi>" in browser.get("/account").text


def test_adding_a_second_user_keeps_this_browser_signed_in(browser: TestClient, app: FastAPI) -> None:
    added = send(browser, "/users", "/users", name="Li", role="reader", password=PASSWORD)
    assert added.status_code == 303
    page = browser.get("/")
    assert page.status_code == 200 and 'href="/users"' in page.text and "Sign out" in page.text
    with TestClient(app, base_url=SITE, follow_redirects=False) as other:
        assert other.get("/").headers["location"].startswith("/login")
        assert 'name="name"' in other.get("/login").text
        assert sign_in(other).status_code == 303


def test_invitation_is_shown_once_and_signs_one_person_up(
    browser: TestClient, app: FastAPI, store: Store
) -> None:
    shown = send(browser, "/users", "/users/invitations", role="reader", days="2")
    found = re.search(r'id="new-link">([^<]+)<', shown.text)
    assert found
    link = found[1].removeprefix(SITE)
    assert link not in browser.get("/users").text
    fields = {"name": "Li", "password": PASSWORD, "again": PASSWORD, "invitation": link.partition("=")[2]}
    with TestClient(app, base_url=SITE, follow_redirects=False) as guest:
        assert guest.get(link).status_code == 200
        differs = send(guest, link, "/signup", **{**fields, "again": "x"})
        assert differs.status_code == 400 and "the two passwords differ" in differs.text
        taken = send(guest, link, "/signup", **{**fields, "name": "admin"})
        assert taken.status_code == 409 and 'value="admin"' in taken.text
        assert send(guest, link, "/signup", **fields).headers["location"] == "/"
        assert guest.get("/").headers["location"] == "/read", "a reader's own start"
        assert "Account: <bdi>li</bdi>" in guest.get("/account").text
        spent = guest.get(link)
        assert spent.status_code == 403 and "used before or has expired" in spent.text
    assert browser.get("/").status_code == 200, "who invited is signed in"


def test_sign_up_is_closed_unless_registration_is_open(
    browser: TestClient, store: Store, settings: Settings, clock: FakeClock
) -> None:
    assert browser.get("/signup").status_code == 403
    app = create_app(store, replace(settings, registration="open", host="0.0.0.0"), clock=clock)
    with TestClient(app, base_url=SITE, follow_redirects=False) as guest:
        assert 'href="/signup"' in guest.get("/login").text
        done = send(guest, "/signup", "/signup", name="li", password=PASSWORD, again=PASSWORD)
        assert done.status_code == 303


def test_sign_in_by_name_wants_the_very_password(browser: TestClient, li: int) -> None:
    wrong = sign_in(browser, "li", PASSWORD.strip())
    assert wrong.status_code == 401
    assert "the name or the password is wrong" in wrong.text and 'value="li"' in wrong.text
    assert sign_in(browser, "LI").status_code == 303


def test_settings_password_and_keys_still_sign_in_beside_names(
    store: Store, settings: Settings, clock: FakeClock, li: int
) -> None:
    app = create_app(store, replace(settings, password="operator's own"), clock=clock)
    with store.writing() as connection:
        _, key = add_key(connection, name="k", scopes=["admin"], now=clock())
    for name, secret in (("", "operator's own"), ("Admin", "operator's own"), ("", key), ("admin", key)):
        with TestClient(app, base_url=SITE, follow_redirects=False) as client:
            assert sign_in(client, name, secret).status_code == 303, (name, secret)
            assert client.get("/sources").status_code == 200
    with TestClient(app, base_url=SITE, follow_redirects=False) as client:
        assert sign_in(client, "li", "operator's own").status_code == 401


def test_reader_is_refused_every_page_of_admins(browser: TestClient, li: int) -> None:
    sign_in(browser)
    for path in ("/sources", "/items", "/pipelines", "/runs", "/outlets", "/settings", "/users"):
        assert browser.get(path).status_code == 403, path
    page = browser.get("/account").text
    assert 'href="/sources"' not in page and 'href="/account"' in page


def test_account_page_makes_and_removes_keys_and_app_passwords(
    browser: TestClient, store: Store, li: int, clock: FakeClock
) -> None:
    sign_in(browser)
    shown = send(browser, "/account", "/account/app-passwords", name="phone").text
    password = re.search(r'id="new-app-password">([^<]+)<', shown)
    made = send(browser, "/account", "/account/keys", name="script", scope=["read"], days="7").text
    key = re.search(r'id="new-key">([^<]+)<', made)
    assert password and key
    assert key[1] not in browser.get("/account").text and password[1] not in browser.get("/account").text
    with store.reading() as connection:
        user = find_user_by_app_password(connection, "li", password[1])
        assert user is not None and user.id == li
        found = find_key(connection, key[1], clock())
        assert found is not None and found.user_id == li
        assert find_key(connection, key[1], clock() + 7 * 86_400) is None
    removed = send(browser, "/account", "/account/app-passwords/1/remove")
    revoked = send(browser, "/account", f"/account/keys/{found.id}/revoke")
    assert (removed.status_code, revoked.status_code) == (303, 303)
    with store.reading() as connection:
        assert find_user_by_app_password(connection, "li", password[1]) is None
        assert find_key(connection, key[1], clock()) is None
    for wrong in (
        {"name": "x", "scope": ["admin"]},
        {"name": "", "scope": ["read"]},
        {"name": "x", "days": "y"},
    ):
        assert send(browser, "/account", "/account/keys", **wrong).status_code == 400


def test_account_page_changes_password_language_and_email(browser: TestClient, store: Store, li: int) -> None:
    sign_in(browser)
    new = {"new": "another horse", "again": "another horse"}
    assert send(browser, "/account", "/account/password", current="wrong horse", **new).status_code == 401
    short = {"new": "short", "again": "short"}
    assert send(browser, "/account", "/account/password", current=PASSWORD, **short).status_code == 400
    assert send(browser, "/account", "/account/password", current=PASSWORD, **new).status_code == 303
    assert browser.get("/account").status_code == 200, "this session goes on"
    saved = send(browser, "/account", "/account/profile", email="li@example.org", language="zh")
    assert saved.status_code == 303
    assert "账户" in browser.get("/account").text
    with store.reading() as connection:
        user = get_user(connection, li)
    assert (user.email, user.preferences) == ("li@example.org", {"language": "zh"})
    assert send(browser, "/account", "/account/profile", email="nowhere").status_code == 400


def test_session_ended_on_the_account_page_is_over(browser: TestClient, app: FastAPI, li: int) -> None:
    sign_in(browser)
    with TestClient(app, base_url=SITE, follow_redirects=False) as other:
        sign_in(other)
        (number,) = set(re.findall(r"/account/sessions/(\d+)/end", browser.get("/account").text)) - {
            re.findall(r"this browser.*?/account/sessions/(\d+)/end", browser.get("/account").text, re.S)[0]
        }
        assert send(browser, "/account", f"/account/sessions/{number}/end").status_code == 303
        assert other.get("/account").status_code == 303
    assert browser.get("/account").status_code == 200


def test_session_of_a_limited_key_makes_no_credentials(
    browser: TestClient, store: Store, li: int, clock: FakeClock
) -> None:
    with store.writing() as connection:
        _, key = add_key(connection, name="k", scopes=["read"], now=clock(), user_id=li)
    sign_in(browser, "", key)
    page = browser.get("/account").text
    assert "Make a key" not in page and "Change password" not in page
    for action in ("keys", "app-passwords", "password", "profile"):
        assert send(browser, "/account", f"/account/{action}", name="x").status_code == 403, action


def test_users_page_changes_disables_and_removes(browser: TestClient, store: Store, clock: FakeClock) -> None:
    send(browser, "/users", "/users", name="li", role="reader", password="")
    (_, user) = _users(store)
    assert not user.has_password
    assert send(browser, "/users", f"/users/{user.id}/role", role="admin").status_code == 303
    assert send(browser, "/users", f"/users/{user.id}/role", role="boss").status_code == 400
    assert send(browser, "/users", f"/users/{user.id}/disable").status_code == 303
    assert _users(store)[1].is_disabled and _users(store)[1].is_admin
    assert send(browser, "/users", "/users/1/remove").status_code == 400, "the only enabled admin"
    assert send(browser, "/users", "/users/1/disable").status_code == 400
    assert send(browser, "/users", f"/users/{user.id}/disable", undo="1").status_code == 303
    assert send(browser, "/users", f"/users/{user.id}/remove").status_code == 303
    assert [each.name for each in _users(store)] == ["admin"]
    assert send(browser, "/users", "/users", name="a b", role="reader").status_code == 400
    assert send(browser, "/users", "/users/invitations", role="reader", days="0").status_code == 400
    with store.writing() as connection:
        invitation, _ = add_invitation(connection, role="reader", created_by=1, now=clock())
    assert send(browser, "/users", f"/users/invitations/{invitation.id}/remove").status_code == 303


def test_form_of_another_visitor_changes_nothing(browser: TestClient, app: FastAPI, li: int) -> None:
    with TestClient(app, base_url=SITE, follow_redirects=False) as other:
        foreign = re.search(r'name="form_token" value="([^"]+)"', other.get("/login").text)
    sign_in(browser)
    assert foreign and SESSION_COOKIE in browser.cookies
    answer = browser.post("/account/app-passwords", data={"form_token": foreign[1], "name": "x"})
    assert answer.status_code == 403


def _users(store: Store) -> list[Any]:
    with store.reading() as connection:
        return list(list_users(connection))

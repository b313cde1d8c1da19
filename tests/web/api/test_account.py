"""`/api/auth` and `/api/users`: signing up, in and out, and managing accounts."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.requests import Request
from starlette.testclient import TestClient

from headwater.config import Settings
from headwater.store.core.database import Store
from headwater.store.people.keys import add_key
from headwater.store.people.passwords import hash_password
from headwater.store.people.users import add_user, list_users
from headwater.web.accounts import HASHES_AT_ONCE, Accounts
from headwater.web.api.problems import Refusal
from headwater.web.app import create_app
from headwater.web.pages.visitor import SESSION_COOKIE
from headwater.web.sign_in_limits import ACCOUNT_WINDOW_SECONDS, MOST_ACCOUNT_FAILURES, MOST_FAILURES
from tests.clock import FakeClock
from tests.web.api.conftest import ADDRESS, MakeCaller

PASSWORD = "correct horse"


@pytest.fixture
def li(store: Store, clock: FakeClock) -> int:
    with store.writing() as connection:
        return add_user(connection, name="li", now=clock(), password_hash=hash_password(PASSWORD)).id


def sign_in(client: TestClient, name: str = "li", password: str = PASSWORD, **headers: str) -> Any:
    return client.post("/api/auth/login", json={"name": name, "password": password}, headers=headers)


def test_sign_in_gives_a_session_until_sign_out(stranger: TestClient, li: int) -> None:
    assert stranger.get("/api/auth/me").status_code == 401
    answer = sign_in(stranger, "LI")
    assert answer.status_code == 200
    assert (answer.json()["id"], answer.json()["role"]) == (li, "reader")
    assert "httponly" in answer.headers["set-cookie"].lower()
    me = stranger.get("/api/auth/me").json()
    assert me["scopes"] == ["read", "refresh", "edit"] and me["last_seen_at"] is not None
    token = stranger.cookies[SESSION_COOKIE]
    assert stranger.post("/api/auth/logout").status_code == 204
    stranger.cookies.set(SESSION_COOKIE, token)
    assert stranger.get("/api/auth/me").status_code == 401, "the session itself has ended"


def test_wrong_password_and_unknown_name_are_told_alike(stranger: TestClient, li: int) -> None:
    answers = [sign_in(stranger, name, "wrong horse") for name in ("li", "unknown", "admin")]
    assert {answer.status_code for answer in answers} == {401}
    assert {answer.json()["detail"] for answer in answers} == {"the name or the password is wrong"}


def test_guesses_are_limited_by_address(stranger: TestClient, li: int, clock: FakeClock) -> None:
    statuses = [sign_in(stranger, f"user{n}", "wrong horse").status_code for n in range(MOST_FAILURES + 1)]
    assert statuses == [401] * MOST_FAILURES + [429]


def test_guesses_are_limited_by_account_from_many_addresses(
    store: Store, settings: Settings, clock: FakeClock, li: int
) -> None:
    app = create_app(store, settings, clock=clock)
    statuses = []
    for number in range(MOST_ACCOUNT_FAILURES + 1):
        with TestClient(app, base_url=ADDRESS, client=(f"192.0.2.{number + 1}", 1)) as client:
            statuses.append(sign_in(client, "Li", "wrong horse").status_code)
    assert statuses == [401] * MOST_ACCOUNT_FAILURES + [429]
    with TestClient(app, base_url=ADDRESS, client=("198.51.100.1", 1)) as client:
        assert sign_in(client).status_code == 429, "a guesser who is right now does not learn of it"
        clock.advance(ACCOUNT_WINDOW_SECONDS + 1)
        assert sign_in(client).status_code == 200


def test_another_site_can_neither_sign_in_nor_act(stranger: TestClient, li: int) -> None:
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert sign_in(stranger, **headers).status_code == 403
    sign_in(stranger)
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert stranger.get("/api/auth/me", headers=headers).status_code == 401
        assert stranger.patch("/api/auth/me", json={}, headers=headers).status_code == 401
    assert stranger.patch("/api/auth/me", json={}).status_code == 200


def test_open_machine_needs_no_sign_in_until_a_second_user_exists(
    stranger: TestClient, store: Store, clock: FakeClock
) -> None:
    assert stranger.get("/api/auth/me").json()["name"] == "admin"
    assert stranger.patch("/api/auth/me", json={}).status_code == 401, "any page could have sent that"
    own = {"Sec-Fetch-Site": "same-origin"}
    assert stranger.patch("/api/auth/me", json={}, headers=own).status_code == 200
    assert stranger.get("/").status_code == 200
    with store.writing() as connection:
        add_user(connection, name="li", now=clock())
    assert stranger.get("/api/auth/me").status_code == 401
    assert stranger.get("/", follow_redirects=False).status_code == 303
    assert stranger.get("/metrics").status_code == 401


def test_registration_is_closed_without_an_invitation(
    stranger: TestClient, caller: MakeCaller, store: Store
) -> None:
    new = {"name": "Li", "password": PASSWORD}
    assert stranger.post("/api/auth/register", json=new).status_code == 403
    admin = caller("admin")
    made = admin.post("/api/users/invitations", json={"role": "reader", "days": 1})
    assert made.status_code == 201
    invitation = made.json()["token"]
    assert made.json()["link"].endswith(f"/signup?invitation={invitation}")
    short = stranger.post("/api/auth/register", json={**new, "password": "short", "invitation": invitation})
    assert short.status_code == 400
    answer = stranger.post("/api/auth/register", json={**new, "invitation": invitation})
    assert (answer.status_code, answer.json()["name"]) == (201, "li")
    assert stranger.get("/api/auth/me").json()["name"] == "li"
    again = stranger.post("/api/auth/register", json={**new, "name": "wei", "invitation": invitation})
    assert again.status_code == 400
    (listed,) = admin.get("/api/users/invitations").json()["invitations"]
    assert listed["used_at"] is not None and "token" not in listed
    assert admin.delete(f"/api/users/invitations/{listed['id']}").status_code == 204
    with store.reading() as connection:
        assert [user.name for user in list_users(connection)] == ["admin", "li"]


def test_open_registration_makes_readers(store: Store, settings: Settings, clock: FakeClock) -> None:
    app = create_app(store, replace(settings, registration="open"), clock=clock)
    with TestClient(app, base_url=ADDRESS) as client:
        new = {"name": "li", "password": PASSWORD, "email": "li@example.org"}
        assert client.post("/api/auth/register", json=new).json()["role"] == "reader"
        assert client.post("/api/auth/register", json=new).status_code == 409


def test_admin_manages_users(caller: MakeCaller, stranger: TestClient) -> None:
    admin = caller("admin")
    made = admin.post("/api/users", json={"name": "Wei", "password": PASSWORD})
    assert made.status_code == 201
    path = f"/api/users/{made.json()['id']}"
    assert admin.post("/api/users", json={"name": "WEI"}).status_code == 409
    assert sign_in(stranger, "wei").status_code == 200
    assert admin.patch(path, json={"password": "another horse"}).status_code == 200
    assert stranger.get("/api/auth/me").status_code == 401, "a new password ends sessions"
    assert sign_in(stranger, "wei", "another horse").status_code == 200
    assert admin.patch(path, json={"is_disabled": True, "email": "w@x.example"}).json()["is_disabled"]
    assert stranger.get("/api/auth/me").status_code == 401
    assert admin.get(path).json()["email"] == "w@x.example"
    assert admin.delete(path).status_code == 204
    assert admin.get(path).status_code == 404
    assert [user["name"] for user in admin.get("/api/users").json()["users"]] == ["admin"]
    assert admin.delete("/api/users/1").status_code == 400, "the last admin stays"


def test_key_of_an_admin_without_the_scope_manages_no_users(caller: MakeCaller) -> None:
    assert caller("read", "edit", "refresh").get("/api/users").status_code == 403


@pytest.fixture
def reader_key(app: FastAPI, store: Store, clock: FakeClock, li: int) -> Iterator[Any]:
    def make(*scopes: str) -> TestClient:
        with store.writing() as connection:
            _, secret = add_key(connection, name="k", scopes=scopes, now=clock(), user_id=li)
        return TestClient(app, base_url=ADDRESS, headers={"Authorization": f"Bearer {secret}"})

    yield make


def test_reader_with_every_scope_is_refused_what_needs_an_admin(reader_key: Any) -> None:
    reader = reader_key("read", "refresh", "edit")
    for path in ("/api/sources", "/api/users", "/api/keys", "/api/settings", "/metrics"):
        assert reader.get(path).status_code == 403, path
    assert reader.get("/api/auth/me").status_code == 200


def test_read_key_changes_nothing_and_makes_no_keys(reader_key: Any) -> None:
    reader = reader_key("read")
    assert reader.get("/api/auth/me").status_code == 200
    assert reader.patch("/api/auth/me", json={"email": "x@y.example"}).status_code == 403
    for path, body in (
        ("keys", {"name": "k"}),
        ("app-passwords", {"name": "p"}),
        ("password", {"new": PASSWORD}),
    ):
        assert reader.post(f"/api/auth/{path}", json=body).status_code == 403, path
    assert reader_key("read", "edit").post("/api/auth/keys", json={"name": "k"}).status_code == 403
    assert reader_key("refresh").get("/api/auth/me").status_code == 200


def test_own_keys_app_passwords_and_preferences(stranger: TestClient, li: int, clock: FakeClock) -> None:
    sign_in(stranger)
    assert stranger.post("/api/auth/keys", json={"name": "k", "scopes": ["admin"]}).status_code == 400
    key = stranger.post("/api/auth/keys", json={"name": "k", "scopes": ["read"], "days": 1}).json()
    assert key["user_name"] == "li" and key["expires_at"] is not None
    bearer = {"Authorization": f"Bearer {key['key']}"}
    assert stranger.get("/api/auth/me", headers=bearer).status_code == 200
    made = stranger.post("/api/auth/app-passwords", json={"name": "phone"}).json()
    assert len(made["password"]) >= 24
    (listed,) = stranger.get("/api/auth/app-passwords").json()["app_passwords"]
    assert listed == {name: made[name] for name in listed} and "password" not in listed
    assert stranger.delete(f"/api/auth/app-passwords/{listed['id']}").status_code == 204
    stranger.patch("/api/auth/me", json={"preferences": {"language": "zh", "theme": "dark"}})
    answer = stranger.patch("/api/auth/me", json={"preferences": {"theme": None}}).json()
    assert answer["preferences"] == {"language": "zh"}
    assert stranger.delete(f"/api/auth/keys/{key['id']}").json()["revoked_at"] is not None
    assert stranger.get("/api/auth/me", headers=bearer).status_code == 401
    assert len(stranger.get("/api/auth/sessions").json()["sessions"]) == 1


def test_change_of_password_wants_the_current_one_and_ends_other_sessions(app: FastAPI, li: int) -> None:
    with TestClient(app, base_url=ADDRESS) as one, TestClient(app, base_url=ADDRESS) as other:
        sign_in(one)
        sign_in(other)
        new = "another horse"
        wrong = one.post("/api/auth/password", json={"current": "wrong", "new": new})
        assert wrong.status_code == 401
        assert one.post("/api/auth/password", json={"current": PASSWORD, "new": new}).status_code == 204
        assert one.get("/api/auth/me").status_code == 200
        assert other.get("/api/auth/me").status_code == 401
        assert sign_in(other).status_code == 401
        assert sign_in(other, "li", new).status_code == 200


def test_proxys_header_is_believed_from_trusted_proxies_only(
    store: Store, settings: Settings, clock: FakeClock, li: int
) -> None:
    behind = replace(settings, host="0.0.0.0", auth_header="Remote-User", trusted_proxies=("192.0.2.7/32",))
    app = create_app(store, behind, clock=clock)

    def me(peer: str, headers: dict[str, str] | list[tuple[str, str]]) -> Any:
        with TestClient(app, base_url="http://news.example", client=(peer, 1)) as client:
            return client.get("/api/auth/me", headers=headers)

    assert me("192.0.2.7", {"Remote-User": "Li"}).json()["name"] == "li"
    assert me("192.0.2.8", {"Remote-User": "li"}).status_code == 401
    assert me("192.0.2.8", {"Remote-User": "li", "X-Forwarded-For": "192.0.2.7"}).status_code == 401
    assert me("192.0.2.7", {"Remote-User": "unknown"}).status_code == 401
    assert me("192.0.2.7", [("Remote-User", "li"), ("Remote-User", "admin")]).status_code == 401
    assert me("192.0.2.7", {}).status_code == 401


def test_proxys_user_gets_an_account_where_registration_allows_it(
    store: Store, settings: Settings, clock: FakeClock
) -> None:
    behind = replace(
        settings,
        host="0.0.0.0",
        auth_header="Remote-User",
        trusted_proxies=("192.0.2.7/32",),
        registration="provider",
    )
    app = create_app(store, behind, clock=clock)
    with TestClient(app, base_url="http://news.example", client=("192.0.2.7", 1)) as client:
        for _ in range(2):
            me = client.get("/api/auth/me", headers={"Remote-User": "Wei"}).json()
            assert (me["name"], me["role"]) == ("wei", "reader")
        assert client.get("/sources", headers={"Remote-User": "wei"}).status_code == 403
        assert client.get("/sources", headers={"Remote-User": "admin"}).status_code == 200


async def test_guesses_at_the_same_moment_are_limited_too(
    store: Store, settings: Settings, clock: FakeClock, li: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[str] = []

    def look_at(password_hash: str | None, password: str) -> bool:
        looked_at.append(password)
        return False

    monkeypatch.setattr("headwater.web.accounts.is_password", look_at)
    app = create_app(store, settings, clock=clock)
    accounts: Accounts = app.state.accounts
    request = Request({"type": "http", "headers": [], "client": ("192.0.2.1", 1), "app": app})
    guesses = (accounts.check_password(request, "li", f"guess {number}") for number in range(60))
    refused = await asyncio.gather(*guesses, return_exceptions=True)
    assert {each.status for each in refused if isinstance(each, Refusal)} == {401, 429}
    assert len(looked_at) < MOST_ACCOUNT_FAILURES + HASHES_AT_ONCE


def test_unknown_invitation_counts_as_a_guess_and_costs_no_hash(
    stranger: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.web.accounts.hash_password", lambda password: pytest.fail("hashed"))
    given = {"name": "eve", "password": "correct horse battery", "invitation": "hwi_guess"}
    statuses = [stranger.post("/api/auth/register", json=given).status_code for _ in range(MOST_FAILURES + 1)]
    assert statuses == [400] * MOST_FAILURES + [429]

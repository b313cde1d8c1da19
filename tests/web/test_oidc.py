"""Signing in with an OpenID Connect provider that runs on loopback."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc import jwk
from starlette.testclient import TestClient

from headwater.config import Settings
from headwater.store.core.database import Store
from headwater.store.people.invitations import add_invitation
from headwater.store.people.sessions import list_sessions, make_link
from headwater.store.people.users import disable_user, find_user, list_users
from headwater.web.app import create_app
from headwater.web.oidc import Attempt
from headwater.web.pages.provider import ATTEMPT_COOKIE
from tests.clock import FakeClock
from tests.origin import Origin
from tests.provider import CLIENT_ID, CLIENT_SECRET, OidcProvider

SITE = "http://127.0.0.1:8626"
OWN = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def provider(clock: FakeClock) -> Iterator[OidcProvider]:
    with Origin() as origin:
        yield OidcProvider(origin, clock)


def settings_with(settings: Settings, provider: OidcProvider, **changes: Any) -> Settings:
    return replace(
        settings,
        oidc_issuer=provider.issuer + "/",
        oidc_client_id=CLIENT_ID,
        oidc_client_secret=CLIENT_SECRET,
        **changes,
    )


@pytest.fixture
def browser(
    store: Store, settings: Settings, clock: FakeClock, provider: OidcProvider
) -> Iterator[TestClient]:
    app = create_app(store, settings_with(settings, provider, registration="provider"), clock=clock)
    with TestClient(app, base_url=SITE, follow_redirects=False) as client:
        yield client


@pytest.fixture
def closed(
    store: Store, settings: Settings, clock: FakeClock, provider: OidcProvider
) -> Iterator[TestClient]:
    app = create_app(store, settings_with(settings, provider), clock=clock)
    with TestClient(app, base_url=SITE, follow_redirects=False) as client:
        yield client


def sign_in(browser: TestClient, provider: OidcProvider, query: str = "?next=/account") -> Any:
    there = browser.get(f"/login/oidc{query}", headers=OWN)
    assert there.status_code == 303, there.text
    return browser.get(provider.sign_in(there.headers["location"]))


def test_sign_in_makes_a_reader_once_and_finds_it_again(
    browser: TestClient, provider: OidcProvider, store: Store, clock: FakeClock
) -> None:
    assert "Sign in with your provider" in browser.get("/login").text
    for _ in range(2):
        back = sign_in(browser, provider)
        assert (back.status_code, back.headers["location"]) == (303, "/account")
        me = browser.get("/api/auth/me").json()
        assert (me["name"], me["role"], me["email"]) == ("li", "reader", None)
        browser.cookies.clear()
    with store.reading() as connection:
        assert [user.name for user in list_users(connection)] == ["admin", "li"]
        assert {session.signed_in_by for session in list_sessions(connection, clock())} == {"oidc"}


def test_taken_name_gets_a_number_and_is_never_taken_over(
    browser: TestClient, provider: OidcProvider
) -> None:
    provider.claims = {
        "sub": "1",
        "preferred_username": "admin",
        "email": "a@b.example",
        "email_verified": True,
    }
    sign_in(browser, provider)
    me = browser.get("/api/auth/me").json()
    assert (me["name"], me["role"], me["email"]) == ("admin2", "reader", "a@b.example")


def test_email_that_is_not_verified_is_not_taken(browser: TestClient, provider: OidcProvider) -> None:
    provider.claims = {"sub": "1", "email": "boss@b.example", "email_verified": "false"}
    sign_in(browser, provider)
    assert browser.get("/api/auth/me").json()["email"] is None


def test_closed_registration_refuses_the_unknown_and_takes_an_invitation(
    closed: TestClient, provider: OidcProvider, store: Store, clock: FakeClock
) -> None:
    refused = sign_in(closed, provider)
    assert refused.status_code == 403
    assert "ask an admin for an invitation" in refused.text
    with store.writing() as connection:
        _, token = add_invitation(connection, role="admin", created_by=1, now=clock())
    assert "Continue with your provider" in closed.get(f"/signup?invitation={token}").text
    assert sign_in(closed, provider, f"?invitation={token}").status_code == 303
    assert closed.get("/api/auth/me").json()["role"] == "admin"


def test_disabled_user_is_refused(browser: TestClient, provider: OidcProvider, store: Store) -> None:
    sign_in(browser, provider)
    browser.cookies.clear()
    with store.writing() as connection:
        user = find_user(connection, "li")
        assert user is not None
        disable_user(connection, user.id)
    assert sign_in(browser, provider).status_code == 403


def _other(name: str, value: Any) -> Any:
    return lambda claims: claims.update({name: value})


@pytest.mark.parametrize(
    "change",
    [
        _other("iss", "https://evil.example"),
        _other("aud", "another client"),
        _other("aud", [CLIENT_ID, "another client"]),
        _other("nonce", "of another attempt"),
        _other("exp", 1),
        lambda claims: claims.pop("exp"),
        lambda claims: claims.pop("nonce"),
        lambda claims: claims.pop("sub"),
    ],
)
def test_token_with_wrong_claims_signs_no_one_in(
    browser: TestClient, provider: OidcProvider, change: Any
) -> None:
    provider.change = change
    assert sign_in(browser, provider).status_code == 502
    assert browser.get("/api/auth/me").status_code == 401


def test_token_signed_by_another_key_signs_no_one_in(browser: TestClient, provider: OidcProvider) -> None:
    provider.signing_key = jwk.RSAKey.generate_key(2048, parameters={"kid": "one"})
    assert sign_in(browser, provider).status_code == 502
    assert browser.get("/api/auth/me").status_code == 401


def test_answer_that_was_not_asked_for_is_refused(browser: TestClient, provider: OidcProvider) -> None:
    there = browser.get("/login/oidc", headers=OWN)
    back = provider.sign_in(there.headers["location"])
    browser.cookies.clear()
    assert browser.get(back).status_code == 400, "another browser's sign-in"
    browser.get("/login/oidc", headers=OWN)
    assert browser.get(back).status_code == 400, "another attempt's state"
    for wrong in ("", "x", "eyJ9", Attempt.begin("/").dump()):
        browser.cookies.set(ATTEMPT_COOKIE, wrong, path="/login/oidc")
        assert browser.get("/login/oidc/callback?code=x&state=").status_code == 400
        browser.cookies.clear()


def test_provider_that_says_no_or_is_away_is_told(
    browser: TestClient, store: Store, settings: Settings, clock: FakeClock, provider: OidcProvider
) -> None:
    state = parse_qs(urlsplit(browser.get("/login/oidc", headers=OWN).headers["location"]).query)["state"][0]
    answer = browser.get(f"/login/oidc/callback?error=access_denied&state={state}")
    assert answer.status_code == 403 and "access_denied" in answer.text
    away = replace(settings_with(settings, provider), oidc_issuer="http://127.0.0.1:1")
    with TestClient(create_app(store, away, clock=clock), base_url=SITE, follow_redirects=False) as client:
        answer = client.get("/login/oidc", headers=OWN)
    assert answer.status_code == 502 and "the sign-in provider failed" in answer.text


def test_signed_in_user_connects_the_provider_to_their_account(
    closed: TestClient, provider: OidcProvider, store: Store, clock: FakeClock
) -> None:
    with store.writing() as connection:
        link = make_link(connection, clock())
    token = closed.get("/login").text.split('name="form_token" value="')[1].split('"')[0]
    closed.post("/login", data={"form_token": token, "secret": link})
    assert "Connect your provider" in closed.get("/account").text
    assert sign_in(closed, provider).status_code == 303
    assert "you can sign in with your provider" in closed.get("/account").text
    closed.cookies.clear()
    sign_in(closed, provider)
    assert closed.get("/api/auth/me").json()["name"] == "admin"


def test_another_sites_link_begins_no_sign_in_and_asks_no_provider(
    browser: TestClient, provider: OidcProvider
) -> None:
    """It could connect its own account at the provider to the account of who is signed in here."""
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Referer": "https://evil.example/"}, {}):
        there = browser.get("/login/oidc?next=/account", headers=headers)
        assert (there.status_code, there.headers["location"]) == (303, "/login?next=%2Faccount")
        assert ATTEMPT_COOKIE not in browser.cookies
    assert provider.requests == []

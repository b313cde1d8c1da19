"""From one person to two: invite, sign up, sign in, make an app password, be locked out."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from headwater.language import Language
from tests.browser.conftest import Words, in_language, opened, running
from tests.browser.test_accessibility import problems_of

PASSWORD = "correct horse battery"
READING = re.compile(r"/read(\?|$)")
LANGUAGES: tuple[Language, ...] = ("en", "zh")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    with running(tmp_path, "serve", HEADWATER_PIPELINE_CONCURRENCY="0") as address:
        yield address


def fill(page: Page, **fields: str) -> None:
    for name, value in fields.items():
        page.fill(f"[name={name}]", value)


def button(page: Page, text: str) -> None:
    page.get_by_role("button", name=text, exact=True).first.click()


def invite(page: Page, address: str, t: Words) -> str:
    """An invitation's link, found as a person finds it: from the settings."""
    page.goto(f"{address}/settings")
    page.get_by_role("link", name=t("Add or invite users")).click()
    button(page, t("Make an invitation"))
    return page.inner_text("#new-link")


@pytest.mark.parametrize("language", LANGUAGES)
def test_second_person_is_invited_signs_up_and_is_locked_out(
    chromium: Browser, served: str, axe: str, language: Language
) -> None:
    t = in_language(language)
    problems = []
    with opened(chromium, language) as admin, opened(chromium, language) as guest:
        admin.goto(served)
        expect(admin.get_by_role("link", name=t("Account"), exact=True)).to_have_count(0)
        link = invite(admin, served, t)
        problems += problems_of(admin, axe)

        guest.goto(link)
        problems += problems_of(guest, axe)
        fill(guest, name="Li", password=PASSWORD, again=PASSWORD)
        button(guest, t("Create account"))
        expect(guest).to_have_url(READING)
        guest.goto(f"{served}/account")
        guest.fill("#app-passwords [name=name]", "phone")
        button(guest, t("Make an app password"))
        expect(guest.locator("#new-app-password")).to_have_text(re.compile(r"\S{24}"))
        problems += problems_of(guest, axe)
        assert guest.request.get(f"{served}/api/auth/me").json()["name"] == "li"
        assert guest.request.get(f"{served}/sources").status == 403

        # The door: out, a wrong password, in again.
        guest.locator("details.me summary").click()
        guest.locator("details.me").get_by_role("button", name=t("Sign out")).click()
        fill(guest, name="li", secret="wrong horse battery")
        button(guest, t("Sign in"))
        expect(guest.get_by_role("alert")).to_contain_text(t("the name or the password is wrong"))
        problems += problems_of(guest, axe)
        fill(guest, name="LI", secret=PASSWORD)
        button(guest, t("Sign in"))
        expect(guest).to_have_url(READING)

        admin.goto(f"{served}/users")
        expect(admin.get_by_role("link", name=t("Account"), exact=True).first).to_be_visible()
        admin.get_by_role("row", name="li").get_by_role("button", name=t("Disable")).click()
        guest.goto(f"{served}/account")
        expect(guest).to_have_url(re.compile("/login"))
    assert problems == []


def test_used_invitation_makes_no_second_account(chromium: Browser, served: str) -> None:
    t = in_language("en")
    with opened(chromium) as admin, opened(chromium) as first, opened(chromium) as second:
        link = invite(admin, served, t)
        first.goto(link)
        second.goto(link)
        for guest, name in ((first, "li"), (second, "wei")):
            fill(guest, name=name, password=PASSWORD, again=PASSWORD)
            button(guest, t("Create account"))
        expect(first).to_have_url(READING)
        expect(second.get_by_role("alert").first).to_contain_text("used before or has expired")


KEPT = """async () => [await caches.match("/read"), await caches.match("/picture?u=private")].map(each => !!each)"""


def test_signing_out_leaves_nothing_that_was_read_in_the_browser(chromium: Browser, served: str) -> None:
    t = in_language("en")
    with opened(chromium) as admin, opened(chromium) as guest:
        guest.goto(invite(admin, served, t))
        fill(guest, name="li", password=PASSWORD, again=PASSWORD)
        button(guest, t("Create account"))
        guest.goto(f"{served}/read")
        guest.evaluate("navigator.serviceWorker.ready.then(() => true)")
        guest.reload()  # now through the service worker
        guest.wait_for_function("() => navigator.serviceWorker.controller !== null")
        guest.evaluate(
            """async () => (await caches.open("headwater-files-1")).put("/picture?u=private", new Response("x"))"""
        )
        guest.wait_for_function("async () => !!(await caches.match('/read'))")
        assert guest.evaluate(KEPT) == [True, True]
        guest.locator("details.me summary").click()
        guest.locator("details.me").get_by_role("button", name=t("Sign out")).click()
        expect(guest).to_have_url(re.compile("/login"))
        guest.wait_for_function("async () => !(await caches.match('/read'))")
        assert guest.evaluate(KEPT) == [False, False]

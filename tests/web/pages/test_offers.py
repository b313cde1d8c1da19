"""Pages offer what their visitor may do, and nothing else."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from headwater.config import Settings
from headwater.store.core.database import Store
from headwater.store.people.keys import add_key
from headwater.web.app import create_app
from tests.clock import NOON
from tests.databases import copy_sqlite
from tests.web.api.test_schema import furnish
from tests.web.pages.test_visitor import sign_in

FORM = re.compile(r'(<form[^>]*method="post"[^>]*action="([^"]*)"[^>]*>)(.*?)</form>', re.DOTALL)
NAME = re.compile(r'<form[^>]* id="([^"]+)"')
BUTTON = re.compile(r"<button\b|<input[^>]*type=\"submit\"")
OWN = {"/logout", "/account/profile"}  # what concerns the visitor alone
FEWEST_PAGES = 15


def pages(browser: TestClient) -> Iterator[tuple[str, str]]:
    """Every page that the links of other pages lead to."""
    seen: set[str] = set()
    waiting = ["/"]
    while waiting:
        path = waiting.pop()
        answer = browser.get(path)
        if answer.headers["content-type"].startswith("text/html"):
            assert answer.status_code == 200, f"{path} was offered and is refused: {answer.status_code}"
            yield path, answer.text
        for link in re.findall(r'href="(/[^"#?]*)', answer.text):
            if link not in seen and not link.startswith(("/static/", "/outlets/", "/api", "/media/")):
                seen.add(link)
                waiting.append(link)


def offers(browser: TestClient) -> set[str]:
    """The addresses of the forms that have a button."""
    found: set[str] = set()
    count = 0
    for _, page in pages(browser):
        count += 1
        # A button may stand outside of its form, in the bar of the page.
        found |= {
            form[2]
            for form in FORM.finditer(page)
            if BUTTON.search(form[3])
            or ((name := NAME.search(form[0])) and f'<button form="{name[1]}"' in page)
        }
    assert count >= FEWEST_PAGES
    return found


@pytest.mark.parametrize("scope", ["read", "admin"])
def test_pages_offer_a_reader_nothing_to_change(
    sqlite_template: Path, tmp_path: Path, settings: Settings, scope: str
) -> None:
    with Store.open(copy_sqlite(sqlite_template, tmp_path / "headwater.db")) as store:
        furnish(store)
        with store.writing() as connection:
            connection.exec_driver_sql("UPDATE digests SET name = 'digest-' || id")
            _, secret = add_key(connection, name="visitor", scopes=[scope], now=NOON)
        app = create_app(store, replace(settings, host="0.0.0.0"))
        with TestClient(app, base_url="https://x.example", follow_redirects=False) as browser:
            sign_in(browser, secret)
            found = offers(browser)
    if scope == "read":
        assert found <= OWN
    else:
        assert {"/sources/bulk", "/pipelines/1", "/settings/keys"} <= found, "the test sees what is there"

"""Tokens in the addresses of sources are for admins."""

import pytest
from starlette.testclient import TestClient

from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from tests.clock import NOON
from tests.web.api.conftest import MakeCaller

URL = "https://one.example/feed?api_key=S3CRET&page=1"
SHOWN = "https://one.example/feed?api_key=***&page=1"


@pytest.fixture(autouse=True)
def source(store: Store) -> None:
    with store.writing() as connection:
        add_source(connection, name="one", type="rss.feed", url=URL, now=NOON)


def test_only_admins_see_the_token_of_an_address(caller: MakeCaller, stranger: TestClient) -> None:
    reader, admin = caller("read"), caller("admin")
    for who, url in ((reader, SHOWN), (admin, URL)):
        assert who.get("/api/sources/1").json()["url"] == url
        assert who.get("/api/sources").json()["sources"][0]["url"] == url
    assert stranger.get("/api/sources").json()["sources"][0]["url"] == SHOWN


def test_a_reader_cannot_search_for_a_token(caller: MakeCaller) -> None:
    def found(scope: str, text: str) -> int:
        return len(caller(scope).get("/api/sources", params={"search": text}).json()["sources"])

    assert found("read", "one.example") == found("admin", "S3CR") == 1
    assert found("read", "S3CR") == found("read", "NONE") == 0


def test_the_export_holds_tokens_only_for_admins_who_ask(caller: MakeCaller) -> None:
    reader, admin = caller("read"), caller("admin")
    for who in (reader, admin):
        assert "S3CRET" not in who.get("/api/sources/export").text
        assert "api_key=***" in who.get("/api/sources/export").text
    assert "S3CRET" in admin.get("/api/sources/export?with_secrets=true").text
    assert reader.get("/api/sources/export?with_secrets=true").status_code == 403

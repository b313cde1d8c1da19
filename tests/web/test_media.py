"""Archived files are served under signed addresses only, in parts, and can run nothing; outlets and pages use them."""

import hashlib
import io
import os
from pathlib import Path

import feedparser
import pytest
from starlette.testclient import TestClient

from headwater.config import Settings
from headwater.model import Enclosure, Item, Result
from headwater.pipeline.steps.archive_media import store_file
from headwater.publish.cleanup import UNUSED_SECONDS, Cleaner
from headwater.publish.media import MediaAddresses, use_own_media
from headwater.store.core.database import Store
from headwater.store.reading.media import find_media, media_secret
from headwater.store.reading.outlets import Outlet, add_outlet
from headwater.store.reading.results import NewResult, write_results
from headwater.store.reading.retention import delete_idle_items
from headwater.web.app import create_app
from tests.clock import NOON, FakeClock
from tests.publish.test_outlets import store_items

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
SHA = hashlib.sha256(PNG).hexdigest()
IMAGE, EPISODE = "https://a.example/i.png?a=1&b=2", "https://a.example/e.mp3"


def archive(store: Store, settings: Settings) -> None:
    """An item with an archived image, shown in its text and as its enclosure."""
    for body in (PNG, SVG):
        store_file(settings.data_dir / "media", body)
    files = [
        {"url": url, "sha256": hashlib.sha256(body).hexdigest(), "media_type": kind, "size_bytes": len(body)}
        for url, body, kind in (
            (IMAGE, PNG, "image/png"),
            (EPISODE, PNG, "image/png"),
            ("https://a.example/x.svg", SVG, "image/svg+xml"),
        )
    ]
    with store.writing() as connection:
        content = f'<p>Hi</p><img src="{IMAGE.replace("&", "&amp;")}" srcset="https://a.example/2x.png 2x">'
        item = Item(
            "a",
            title="A",
            url="https://a.example/1",
            content=content,
            enclosures=(Enclosure(EPISODE, "audio/mpeg", 9),),
        )
        store_items(connection, item)
        write_results(connection, [NewResult(1, 1, Result("media", data={"files": files}), NOON)])


@pytest.fixture
def client(store: Store, settings: Settings, clock: FakeClock) -> TestClient:
    archive(store, settings)
    return TestClient(create_app(store, settings, clock=clock), base_url="http://127.0.0.1:8626")


def address(store: Store, settings: Settings, sha256: str = SHA) -> str:
    with store.reading() as connection:
        addresses = MediaAddresses.under(settings.data_dir, media_secret(connection))
    found = addresses.address_of(sha256)
    assert found is not None
    return found


def test_file_is_served_whole_and_in_parts(client: TestClient, store: Store, settings: Settings) -> None:
    url = address(store, settings)
    whole = client.get(url)
    assert (whole.status_code, whole.content, whole.headers["content-type"]) == (200, PNG, "image/png")
    assert whole.headers["accept-ranges"] == "bytes"
    assert "immutable" in whole.headers["cache-control"]
    assert "sandbox" in whole.headers["content-security-policy"]
    assert whole.headers["x-content-type-options"] == "nosniff"
    part = client.get(url, headers={"Range": "bytes=8-15"})
    assert (part.status_code, part.content) == (206, PNG[8:16])
    assert part.headers["content-range"] == f"bytes 8-15/{len(PNG)}"
    assert client.get(url, headers={"Range": f"bytes={len(PNG)}-"}).status_code == 416
    head = client.head(url)
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(PNG)))


@pytest.mark.parametrize("wrong", ["", "?s=", "?s=" + "0" * 32, "?s=é"])
def test_address_without_its_signature_leads_nowhere(client: TestClient, wrong: str) -> None:
    assert client.get(f"/media/{SHA}{wrong}").status_code == 404


def test_signature_of_one_file_opens_no_other(client: TestClient, store: Store, settings: Settings) -> None:
    signature = address(store, settings).partition("?s=")[2]
    other = hashlib.sha256(SVG).hexdigest()
    assert client.get(f"/media/{other}?s={signature}").status_code == 404
    assert client.get(f"/media/..%2f..%2fheadwater.db?s={signature}").status_code == 404


def test_drawing_with_a_script_is_kept_in_a_sandbox(
    client: TestClient, store: Store, settings: Settings
) -> None:
    answer = client.get(address(store, settings, hashlib.sha256(SVG).hexdigest()))
    assert answer.headers["content-type"] == "image/svg+xml"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "sandbox" in policy and "script-src" not in policy


def test_item_page_reads_archived_images_from_here(client: TestClient) -> None:
    page = client.get("/items/1").text
    assert f'src="/media/{SHA}?s=' in page
    assert "srcset" not in page
    assert IMAGE.replace("&", "&amp;") not in page
    assert f'href="/media/{SHA}?s=' in page, "the enclosure"


@pytest.mark.parametrize("own", [True, False])
def test_outlet_uses_archived_files_if_it_is_told_to(client: TestClient, store: Store, own: bool) -> None:
    with store.writing() as connection:
        add_outlet(connection, Outlet("all", "All", own_media=own), NOON)
    [entry] = feedparser.parse(io.BytesIO(client.get("/outlets/all.xml").content)).entries
    [file] = entry["enclosures"]
    body = entry["content"][0]["value"]
    if not own:
        assert file["href"] == EPISODE
        assert IMAGE.replace("&", "&amp;") in body
        return
    assert file["href"].startswith(f"http://127.0.0.1:8626/media/{SHA}?s=")
    assert f"http://127.0.0.1:8626/media/{SHA}?s=" in body
    assert "a.example/i.png" not in body
    assert client.get(file["href"]).content == PNG


def test_use_own_media_changes_nothing_without_archived_files() -> None:
    html = '<img src="https://a.example/1.png" srcset="x 2x">'
    assert use_own_media(html, {}) == html
    assert "srcset" in use_own_media(html, {"https://a.example/other.png": "/media/x"})


async def test_files_are_deleted_after_the_last_item_that_used_them(
    client: TestClient, store: Store, settings: Settings, clock: FakeClock
) -> None:
    tidier = Cleaner(store, settings.data_dir, clock)
    path = settings.data_dir / "media" / SHA[:2] / SHA
    orphan = Path(str(path)[:-1] + ("0" if SHA[-1] != "0" else "1"))
    orphan.write_bytes(b"left behind")
    os.utime(orphan, (1, 1))
    clock.advance(2 * UNUSED_SECONDS)
    assert await tidier.run_if_due()
    assert path.is_file()
    assert not orphan.exists(), "no row knows it"
    with store.writing() as connection:
        delete_idle_items(connection, [1])
    clock.advance(3_700)
    assert await tidier.run_if_due()
    assert not path.exists()
    with store.reading() as connection:
        assert find_media(connection, SHA) is None

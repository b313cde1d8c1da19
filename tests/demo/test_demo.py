"""The demo: a dozen lively sources in every format, collected and shown, and nothing left behind."""

import asyncio
import re
import signal
import socket
import time
from contextlib import nullcontext
from pathlib import Path
from urllib.request import urlopen

import pytest
from starlette.testclient import TestClient

from headwater.config import load_settings
from headwater.demo.publisher import HOOK, create_publisher
from headwater.demo.run import demo_settings, run_demo
from headwater.demo.sources import DOZEN, WINDOW, DemoSource, many
from headwater.errors import InputError
from headwater.formats.feed import parse
from headwater.formats.sitemap import read_sitemap
from tests.clock import FakeClock
from tests.command import Headwater


def test_a_dozen_sources_in_all_formats() -> None:
    assert len(DOZEN) == 12
    assert {source.format for source in DOZEN} == {"rss", "atom", "rdf", "json", "sitemap"}
    assert len({source.path for source in many(100)}) == 100


def test_the_webhook_shows_what_it_was_sent(clock: FakeClock) -> None:
    publisher = TestClient(create_publisher(DOZEN, start_at=clock(), clock=clock))
    assert "Nothing was sent" in publisher.get(HOOK).text
    assert publisher.post(HOOK, json={"content_item": {"title": "one"}}).status_code == 204
    shown = publisher.get(HOOK)
    assert '"title":"one"' in shown.text.replace(": ", ":")
    assert shown.headers["content-type"].startswith("text/plain"), "nothing in it can run"


@pytest.mark.parametrize("source", DOZEN, ids=lambda source: source.slug)
def test_every_document_is_read_as_it_was_written(source: DemoSource, clock: FakeClock) -> None:
    publisher = TestClient(create_publisher(DOZEN, start_at=clock(), clock=clock))
    answer = publisher.get(source.path)
    items = source.items(clock(), clock())[-WINDOW:][::-1]
    assert items
    if source.format == "sitemap":
        assert len(read_sitemap(answer.content).urls) == len(items)
        return
    feed = parse(answer.content, content_type=answer.headers["content-type"])
    assert feed.title == source.name
    assert [entry.title for entry in feed.entries] == [item.title for item in items]
    assert [entry.published and entry.published.timestamp() for entry in feed.entries] == [
        int(item.published_at) for item in items
    ]


@pytest.mark.parametrize("source", DOZEN, ids=lambda source: source.slug)
def test_items_appear_as_time_passes_and_never_change(source: DemoSource, clock: FakeClock) -> None:
    start = clock()
    before = source.items(start, clock())
    after = source.items(start, clock.advance(600))
    assert len(after) > len(before)
    assert after[: len(before)] == before


def test_unchanged_is_304(clock: FakeClock) -> None:
    publisher = TestClient(create_publisher(DOZEN, start_at=clock(), clock=clock))
    first = publisher.get(DOZEN[0].path)
    again = publisher.get(DOZEN[0].path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    clock.advance(60)
    assert publisher.get(DOZEN[0].path, headers={"If-None-Match": first.headers["etag"]}).status_code == 200


def test_the_demo_takes_the_users_settings_but_for_what_it_needs(tmp_path: Path) -> None:
    environment = {"HEADWATER_PROXY": "http://proxy.example:3128", "HEADWATER_PORT": "0"}
    own = load_settings(directory=tmp_path, environment=environment)
    settings = demo_settings(own, tmp_path)
    assert (settings.proxy, settings.port, settings.data_dir) == (None, 0, tmp_path)


async def test_the_publisher_goes_when_the_dashboard_cannot_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        environment = {"HEADWATER_PORT": str(taken.getsockname()[1])}
        settings = load_settings(directory=tmp_path, environment=environment)
        with pytest.raises(InputError, match="choose another port"):
            await run_demo(
                settings, stopping_on_signals=lambda stop: nullcontext(), on_ready=lambda address, hook: None
            )
    assert asyncio.all_tasks() == {asyncio.current_task()}, "nothing goes on publishing"
    assert list(tmp_path.iterdir()) == []


def test_the_whole_demo(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = Headwater(tmp_path, None)
    process = command.start("demo", HEADWATER_PORT="0", TMPDIR=str(temporary))
    assert process.stdout is not None
    said = process.stdout.readline()
    address = re.findall(r"http://\S+", said)[0]
    counts: list[int] = []
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (len(counts) > 1 and counts[-1] > counts[0] > 100):
        time.sleep(0.5)
        page = urlopen(address).read().decode()
        if found := re.search(r"<b>(\d+)</b> items", page):
            counts.append(int(found[1]))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert counts[-1] > counts[0] > 100, "items keep arriving"
    assert "<b>12</b> sources" in page
    assert "<b>0</b> failing" in page
    assert (process.returncode, errors) == (0, "")
    assert list(temporary.iterdir()) == []
    assert not (tmp_path / ".local").exists(), "the demo stays out of the user's own data"

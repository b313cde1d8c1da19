"""The demo: a dozen lively sources in every format, collected and shown, and nothing left behind."""

import asyncio
import re
import signal
import socket
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from urllib.request import urlopen

import pytest
from starlette.testclient import TestClient

from headwater.config import load_settings
from headwater.demo.publisher import HOOK, create_publisher
from headwater.demo.run import demo_settings, run_demo
from headwater.demo.sources import DOZEN, WINDOW, DemoSource, many
from headwater.demo.weeks import MOVED, TOWN, LivingSource
from headwater.errors import InputError
from headwater.formats.feeds.parse import parse
from headwater.formats.sitemaps.read import read_sitemap
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


@pytest.mark.parametrize("source", TOWN, ids=lambda source: source.slug)
def test_living_sources_publish_by_their_habits(source: LivingSource, clock: FakeClock) -> None:
    start = clock()
    past = source.items(start, start)
    assert [item.published_at for item in past] == sorted(item.published_at for item in past)
    assert past == source.items(start, start + 3_600)[: len(past)], "what was published stays"
    zone = datetime.fromtimestamp(start, UTC).astimezone().tzinfo
    times = [datetime.fromtimestamp(item.published_at, zone) for item in past]
    days, hours = {at.weekday() for at in times}, {at.hour for at in times}
    if source.habit in ("office", "weekdays"):
        assert max(days) < 5, "nothing at weekends"
    if source.habit == "fixed_hour":
        assert hours == {source.hour}
    if source.habit == "weekly":
        assert days == {4}


def test_living_source_in_trouble_answers_with_its_status(clock: FakeClock) -> None:
    publisher = TestClient(
        create_publisher((*TOWN, MOVED), start_at=clock(), clock=clock), follow_redirects=False
    )
    answers = {source.slug: publisher.get(source.path) for source in TOWN if source.trouble}
    assert {slug: answer.status_code for slug, answer in answers.items()} == {
        "museum": 301,
        "buoy": 503,
        "letters": 401,
        "oldpost": 410,
    }
    assert publisher.get(answers["museum"].headers["location"]).status_code == 200
    assert MOVED.items(clock(), clock()) == TOWN[12].items(clock(), clock()), "it moved with all it has"


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


@pytest.mark.slow
def test_the_whole_demo(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = Headwater(tmp_path, None)
    process = command.start("demo", "--weeks", "1", HEADWATER_PORT="0", TMPDIR=str(temporary))
    assert process.stdout is not None
    said = next(line for line in process.stdout if "http://" in line)
    address = re.findall(r"http://\S+", said)[0]
    counts: list[int] = []
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (len(counts) > 1 and counts[-1] > counts[0] > 100):
        time.sleep(0.5)
        page = urlopen(address).read().decode()
        if found := re.search(r"([\d,]+) in all", page):
            counts.append(int(found[1].replace(",", "")))
    plan = urlopen(f"{address}sources/2").read().decode()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert counts[-1] > counts[0] > 100, "items keep arriving"
    assert f'<b><a href="/sources">{len(TOWN) + 1}</a></b>' in page
    assert "3 things need your attention" in page, "one fails, one is gone, one refuses its credentials"
    assert "items a day" in plan and 'class="heat"' in plan, "what was learnt is told"
    assert (process.returncode, errors) == (0, "")
    assert list(temporary.iterdir()) == []
    assert not (tmp_path / ".local").exists(), "the demo stays out of the user's own data"

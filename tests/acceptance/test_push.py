"""A push that was answered is kept, even when the process is killed in the next moment."""

import asyncio
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collect.test_push import until
from tests.command import Headwater
from tests.hub import Hub
from tests.origin import Origin

pytestmark = pytest.mark.slow


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as opened:
        yield opened


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_what_was_pushed_outlives_the_process(
    tmp_path: Path, database_url: str, origin: Origin, hub: Hub
) -> None:
    port = free_port()
    headwater = Headwater(tmp_path, database_url)
    headwater.environment |= {
        "HEADWATER_PUBLIC_URL": f"http://127.0.0.1:{port}",
        "HEADWATER_PORT": str(port),
    }
    topic = origin.url("/feed")
    origin.route("/feed", body=hub.feed(topic, 1))
    added = headwater.json("source", "add", topic)
    process = headwater.start("serve")
    try:
        await asyncio.to_thread(hub.wait_until_verified, 1)
        await until(lambda: len(origin.received("/feed")) == 2)
        assert await asyncio.to_thread(hub.push, hub.feed(topic, 2), secret="guessed") == 404
        assert await asyncio.to_thread(hub.push, hub.feed(topic, 2)) == 200
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()
    assert sorted(item["title"] for item in headwater.json("items")) == ["Post 1", "Post 2"]
    push = headwater.json("source", "show", str(added["id"]))["push"]
    assert (push["state"], push["hub"], push["topic"]) == ("active", hub.url, topic)
    assert (push["pushes"], push["forged"], push["last_error"]) == (1, 1, None)
    assert not {"token", "secret"} & push.keys()

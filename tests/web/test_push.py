"""The door for hubs: tells strangers nothing, reads no more than it must, and is there under the public name only."""

import hmac
from collections.abc import Iterator
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from headwater.config import Settings
from headwater.store.collecting.push import (
    FoundHub,
    change_subscription,
    read_subscription,
    write_subscription_changes,
)
from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from headwater.store.reading.items import list_items
from headwater.web.app import create_app
from tests.clock import NOON, FakeClock
from tests.collect.test_engine import rss

TOPIC = "https://one.example/feed"
TOKEN = "a-long-random-token"
SECRET = "a-long-random-secret"
PATH = f"/push/{TOKEN}"
CHALLENGE = "<script>alert(1)</script>"
ASKED = {"hub.mode": "subscribe", "hub.topic": TOPIC, "hub.challenge": CHALLENGE, "hub.lease_seconds": "500"}


@pytest.fixture
def hub(store: Store, settings: Settings, clock: FakeClock) -> Iterator[TestClient]:
    settings = replace(settings, public_url="https://reader.example/", max_body_megabytes=1)
    with TestClient(create_app(store, settings, clock=clock), base_url="https://reader.example") as client:
        yield client


@pytest.fixture
def source_id(store: Store, clock: FakeClock) -> int:
    """A source whose subscription is asked for."""
    with store.writing() as connection:
        source = add_source(connection, name="One", type="rss.feed", url=TOPIC, now=clock())
        found = FoundHub("https://hub.example/", TOPIC, TOKEN, SECRET)
        write_subscription_changes(connection, [(source.id, found, clock())])
        change_subscription(connection, source.id, state="pending")
    return source.id


@pytest.fixture
def active(hub: TestClient, source_id: int) -> TestClient:
    assert hub.get(PATH, params=ASKED).status_code == 200
    return hub


def signed(body: bytes) -> dict[str, str]:
    return {"X-Hub-Signature": "sha512=" + hmac.new(SECRET.encode(), body, "sha512").hexdigest()}


def test_a_challenge_is_answered_as_text(hub: TestClient, store: Store, source_id: int) -> None:
    answer = hub.get(PATH, params=ASKED)
    assert (answer.status_code, answer.text) == (200, CHALLENGE)
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["x-content-type-options"] == "nosniff"
    with store.reading() as connection:
        found = read_subscription(connection, source_id)
    assert found is not None
    assert (found.state, found.lease_ends_at) == ("active", NOON + 500)


def test_strangers_learn_nothing(active: TestClient, store: Store, source_id: int) -> None:
    body = rss(1)
    answers = [
        active.get("/push/another-token", params=ASKED),
        active.get(PATH, params=ASKED | {"hub.topic": "https://else.example/"}),
        active.get(PATH, params=ASKED | {"hub.mode": "unsubscribe"}),
        active.get(PATH, params=ASKED | {"hub.challenge": "x" * 5_000}),
        active.get(PATH),
        active.get("/push/"),
        active.get("/push/" + "x" * 5_000),
        active.put(PATH, content=body),
        active.post("/push/another-token", content=body, headers=signed(body)),
        active.post(PATH, content=body),
        active.post(PATH, content=body, headers=signed(b"else")),
    ]
    assert {(answer.status_code, answer.text) for answer in answers} == {(404, "")}
    assert len({tuple(sorted(answer.headers)) for answer in answers}) == 1
    with store.reading() as connection:
        found = read_subscription(connection, source_id)
        assert list_items(connection) == []
    assert found is not None
    assert found.forged == 2


def test_a_delivery_is_stored(active: TestClient, store: Store, source_id: int) -> None:
    body = rss(1)
    assert active.post(PATH, content=body, headers=signed(body)).status_code == 200
    with store.reading() as connection:
        assert [item.title for item in list_items(connection)] == ["Post 1"]


def test_a_delivery_larger_than_the_cap_is_not_read(active: TestClient, store: Store) -> None:
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        for _ in range(100):
            read += 1
            yield b"x" * 100_000

    assert active.post(PATH, content=endless(), headers=signed(b"")).status_code == 413


def test_public_name_opens_only_this_door_without_signing_in(active: TestClient) -> None:
    front = active.get("/", follow_redirects=False)
    assert (front.status_code, front.headers["location"]) == (303, "/login?next=%2F")
    assert active.get("/api/sources").status_code == 401
    assert active.get("/push", params=ASKED).status_code == 404


def test_other_names_open_no_door(active: TestClient) -> None:
    for path in ("/", "/push", "/login", "/healthz", "/api/sources"):
        assert active.get(path, headers={"Host": "other.example"}).status_code == 400, path


def test_without_a_public_address_there_is_no_door(
    store: Store, settings: Settings, clock: FakeClock, source_id: int
) -> None:
    with TestClient(create_app(store, settings, clock=clock), base_url="http://127.0.0.1") as client:
        assert client.get(PATH, params=ASKED).status_code == 404

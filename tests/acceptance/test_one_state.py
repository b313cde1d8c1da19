"""A source is in one state, and every door tells the same of it: commands, API and pages, with real processes."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from headwater.config import load_settings
from headwater.store.core.database import Store
from headwater.store.people.keys import add_key
from headwater.web.app import create_app
from tests.acceptance.test_collector_document import looping, wait_for
from tests.command import Headwater
from tests.origin import Answer, Origin, Received

pytestmark = pytest.mark.slow

FEED = "<rss version='2.0'><channel><title>One</title><item><guid>1</guid><title>one</title></item></channel></rss>"
STATES = {
    "good": "on_time",
    "bad": "failing",
    "gone": "gone",
    "locked": "failing",
    "paused": "paused",
    "new": "pending",
}
WORDS = {
    "on_time": "on time",
    "failing": "failing",
    "gone": "gone",
    "paused": "paused",
    "pending": "not visited yet",
}
UNPLANNED = {"gone", "paused"}


@pytest.fixture
def command(tmp_path: Path, database_url: str, origin: Origin) -> Headwater:
    """Sources in every state, whether visits or users bring it about."""
    made = Headwater(tmp_path, database_url)
    origin.otherwise(Answer(FEED))
    origin.route("/bad", status=500)
    origin.route("/gone", status=410)
    origin.route("/locked", status=401)
    for name in ("good", "bad", "gone", "locked", "paused"):
        made.ok("source", "add", origin.url(f"/{name}"), "--no-check", "--name", name)
    made.run("collect")
    made.ok("source", "pause", "paused")
    made.ok("source", "add", origin.url("/new"), "--no-check", "--name", "new")
    return made


@pytest.fixture
def ask(database_url: str, tmp_path: Path) -> Iterator[Callable[[str], Any]]:
    """The answers of API and pages to their owner."""
    with Store.open(database_url) as store:
        with store.writing() as connection:
            _, secret = add_key(connection, name="owner", scopes=["admin"], now=time.time())
        app = create_app(store, load_settings(directory=tmp_path, environment={}))
        headers = {"Authorization": f"Bearer {secret}"}
        with TestClient(app, base_url="http://127.0.0.1:8626", headers=headers) as client:
            yield client.get


def test_state_of_a_source_is_the_same_at_every_door(command: Headwater, ask: Callable[[str], Any]) -> None:
    listed = {source["name"]: source for source in command.json("source", "list")}
    assert {name: source["state"] for name, source in listed.items()} == STATES
    told = {source["name"]: source for source in ask("/api/collector/status").json()["sources"]}
    assert {name: source["state"] for name, source in told.items()} == STATES
    api = {source["name"]: source for source in ask("/api/sources").json()["sources"]}
    assert {name: source["state"] for name, source in api.items()} == STATES
    for name, state in STATES.items():
        number = listed[name]["id"]
        plan = ask(f"/api/sources/{number}/plan").json()
        explained = command.json("explain", name)
        assert plan["state"] == explained["state"] == state
        page = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", ask(f"/sources/{number}").text))
        assert f"The plan {WORDS[state]} " in page
        assert command.ok("explain", name).startswith(f"{name} ({WORDS[state]}): ")
        visits = {each[name]["next_fetch_at"] is None for each in (listed, told, api)}
        visits |= {plan["next_fetch_at"] is None, explained["next_fetch_at"] is None}
        assert visits == {state in UNPLANNED or state == "pending"}, (
            "one answer, and none that will not happen"
        )
        if state in UNPLANNED:
            assert "no visit is planned" in explained["why"]
            assert "no visit is planned" in page


def test_explanation_of_a_failing_source_names_the_error_since_when_and_what_to_do(
    command: Headwater,
) -> None:
    for name, error, advice in (
        (
            "bad",
            "the server has a problem (status 500)",
            "what to do: nothing; Headwater retries it automatically",
        ),
        ("locked", "the server wants credentials (status 401)", "what to do: set its credentials again"),
        ("gone", "this is gone for good (status 410)", "what to do: give it another address, or remove it"),
    ):
        text = command.ok("explain", name)
        assert "failing since 20" in text and error in text and advice in text
        assert " items a " not in text, "it never showed one"
        assert error in command.ok("source", "list")


def test_source_whose_credentials_were_refused_is_visited_at_once_with_new_ones(
    command: Headwater, origin: Origin
) -> None:
    """Until then it waits for the interval of its type, and not for what a policy makes of nothing."""

    def answer(request: Received) -> Answer:
        return Answer(FEED) if request.headers.get("authorization") == "Bearer right" else Answer(status=401)

    origin.route("/locked", answer)
    with looping(command):
        wait_for(lambda: origin.received("/new"))
        assert command.json("explain", "locked")["reason"]["interval"] == 240 * 60
        command.ok("source", "edit", "locked", "--config", "bearer_token=right")
        changed_at = time.monotonic()
        wait_for(lambda: command.json("source", "show", "locked")["state"] == "on_time")
        print(f"on time again after {time.monotonic() - changed_at:.1f} s")

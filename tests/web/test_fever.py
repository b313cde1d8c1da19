"""The Fever API, by the requests that real apps send."""

from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from headwater.store.core.database import Store
from headwater.store.people.app_passwords import fever_key, list_app_passwords
from headwater.store.people.folders import make_folder_path
from tests.clock import FakeClock
from tests.web.api.conftest import ADDRESS
from tests.web.api.test_reading import arrive
from tests.web.test_google_reader import Person, app, person, sources

__all__ = ["app", "person", "sources"]


@pytest.fixture
def client(app: FastAPI) -> TestClient:
    return TestClient(app, base_url=ADDRESS, raise_server_exceptions=False)


def ask(client: TestClient, person: Person, query: str, **form: Any) -> dict[str, Any]:
    form["api_key"] = fever_key("ann", person.password)
    answer = client.post(f"/fever/?api&{query}", data=form)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert (found["api_version"], found["auth"]) == (3, 1)
    return found


def ids(text: str) -> list[int]:
    return [int(each) for each in text.split(",") if each]


def test_fever_refuses_unknown_key(client: TestClient, person: Person) -> None:
    for form in ({}, {"api_key": "x"}, {"api_key": fever_key("bob", person.password)}):
        assert client.post("/fever/?api&feeds&items", data=form).json() == {"api_version": 3, "auth": 0}


def test_fever_notes_that_the_app_password_was_used(
    client: TestClient, person: Person, store: Store, clock: FakeClock
) -> None:
    clock.advance(1_000)
    ask(client, person, "unread_item_ids")
    with store.reading() as connection:
        assert [each.last_used_at for each in list_app_passwords(connection, person.id)] == [clock()]


def test_fever_first_sync_shows_groups_feeds_and_items(client: TestClient, person: Person) -> None:
    """As Reeder, Unread and ReadKit begin; the key may come in capitals."""
    found = ask(client, person, "groups&feeds&favicons&links")
    assert [each["title"] for each in found["groups"]] == ["News", "News / World"]
    assert {each["title"]: each["id"] for each in found["feeds"]} == dict(
        zip(("alpha", "beta", "gamma"), person.feeds, strict=True)
    )
    assert ids(found["feeds_groups"][0]["feed_ids"]) == person.feeds[:2]
    assert (found["favicons"], found["links"]) == ([], [])
    page = ask(client, person, "items&since_id=0")
    numbers = [each["id"] for each in page["items"]]
    assert (numbers, page["total_items"]) == (sorted(numbers), 6)
    assert [each["id"] for each in ask(client, person, f"items&max_id={numbers[2]}")["items"]] == numbers[
        1::-1
    ]
    assert [each["id"] for each in ask(client, person, f"items&since_id={numbers[3]}")["items"]] == numbers[
        4:
    ]
    chosen = f"{numbers[4]},{numbers[0]}"
    assert [each["id"] for each in ask(client, person, f"items&with_ids={chosen}")["items"]] == ids(chosen)
    key = fever_key("ann", person.password).upper()
    assert client.post("/fever/?api", data={"api_key": key}).json()["auth"] == 1


def test_fever_shows_nothing_that_runs(
    client: TestClient, person: Person, store: Store, clock: FakeClock
) -> None:
    arrive(store, 1, clock(), "<script>alert(1)</script><img src=/x.png onerror=alert(1)>")
    newest = max(ask(client, person, "items")["items"], key=lambda each: int(each["id"]))
    assert '<img src="https://items.example/x.png">' in newest["html"]
    assert "script" not in newest["html"] and "onerror" not in newest["html"]


@pytest.mark.parametrize("number", ["²", "--5", "9" * 5_000, "5 5", "", "-", "\x00"])
def test_fever_marks_nothing_for_what_is_no_number(client: TestClient, person: Person, number: str) -> None:
    for what in ("item", "feed"):
        found = ask(client, person, "", mark=what, **{"as": "read", "id": number})
        assert len(ids(found["unread_item_ids"])) == 6


def test_fever_marks_items_feeds_and_groups(
    client: TestClient, person: Person, store: Store, clock: FakeClock
) -> None:
    unread = sorted(ids(ask(client, person, "unread_item_ids")["unread_item_ids"]))
    assert len(unread) == 6
    done = ask(client, person, f"mark=item&as=read&id={unread[0]}")
    assert sorted(ids(done["unread_item_ids"])) == unread[1:]
    ask(client, person, "", mark="item", **{"as": "unread", "id": str(unread[0])})
    assert sorted(ids(ask(client, person, "unread_item_ids")["unread_item_ids"])) == unread
    ask(client, person, f"mark=item&as=saved&id={unread[1]}")
    assert ids(ask(client, person, "saved_item_ids")["saved_item_ids"]) == [unread[1]]
    ask(client, person, f"mark=item&as=unsaved&id={unread[1]}")
    assert ask(client, person, "saved_item_ids")["saved_item_ids"] == ""
    seen = int(clock())
    clock.advance(100)
    arrive(store, 1, clock(), "late")
    group = ask(client, person, "groups")["groups"][0]["id"]
    ask(client, person, f"mark=group&as=read&id={group}&before={seen}")
    assert len(ids(ask(client, person, "unread_item_ids")["unread_item_ids"])) == 2
    ask(client, person, f"mark=feed&as=read&id={person.feeds[2]}&before={int(clock())}")
    assert len(ids(ask(client, person, "unread_item_ids")["unread_item_ids"])) == 1
    ask(client, person, "mark=group&as=read&id=0")
    assert ids(ask(client, person, "unread_item_ids")["unread_item_ids"]) == []


def test_fever_answers_readrops(client: TestClient, person: Person, store: Store, clock: FakeClock) -> None:
    """It sends forms in parts, to an address that ends with a slash, and reads fields in their order."""
    with store.writing() as connection:
        make_folder_path(connection, person.id, ["Empty"])
    arrive(store, 3, clock(), "")
    parts = {"api_key": (None, fever_key("ann", person.password))}

    def post(query: str) -> dict[str, Any]:
        answer = client.post(f"/api/fever.php/?{query}", files=parts, follow_redirects=False)
        assert answer.status_code == 200
        found: dict[str, Any] = answer.json()
        assert list(found)[:3] == ["api_version", "auth", "last_refreshed_on_time"]
        return found

    assert list(post("feeds"))[3:] == ["feeds", "feeds_groups"]
    assert list(post("groups"))[3:] == ["groups", "feeds_groups"]
    assert all(each["feed_ids"] for each in post("groups")["feeds_groups"])
    unread = ids(post("unread_item_ids")["unread_item_ids"])
    assert unread == sorted(unread) and len(unread) == 7
    page = post(f"items&max_id={unread[-1] + 1}")
    assert list(page)[3:] == ["total_items", "items"]
    assert [each["id"] for each in page["items"]] == unread[::-1]
    assert all(each["title"] for each in page["items"])
    post(f"mark=item&as=read&id={unread[0]}")
    assert ids(post("unread_item_ids")["unread_item_ids"]) == unread[1:]


def test_fever_answers_read_you(client: TestClient, person: Person) -> None:
    """Its first number is empty, and it ends with an error at a feed in no group."""
    client.headers["User-Agent"] = "ReadYou/0.14.1(37)"
    groups = {each["title"]: each["id"] for each in ask(client, person, "groups")["groups"]}
    shown = {each["group_id"]: ids(each["feed_ids"]) for each in ask(client, person, "feeds")["feeds_groups"]}
    assert shown[groups["Uncategorized"]] == [person.feeds[2]]
    numbers = [each["id"] for each in ask(client, person, "items&since_id=")["items"]]
    assert numbers == sorted(numbers) and len(numbers) == 6
    ask(client, person, f"&mark=group&as=read&id={groups['Uncategorized']}&before={2**63 // 1_000_000}")
    assert len(ids(ask(client, person, "unread_item_ids")["unread_item_ids"])) == 5


def test_fever_answers_fluent_reader(client: TestClient, person: Person) -> None:
    """It goes down from the greatest number that JavaScript knows, and marks by the form."""
    page = ask(client, person, f"items&max_id={2**53 - 1}")["items"]
    assert [each["id"] for each in page] == sorted((each["id"] for each in page), reverse=True)
    assert ask(client, person, f"items&max_id={page[-1]['id']}")["items"] == []
    feeds = {each["id"] for each in ask(client, person, "feeds")["feeds"]}
    assert {each["feed_id"] for each in page} <= feeds
    ask(client, person, "", mark="item", **{"as": "saved", "id": str(page[0]["id"])})
    assert ids(ask(client, person, "saved_item_ids")["saved_item_ids"]) == [page[0]["id"]]

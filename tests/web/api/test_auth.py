"""Keys open what their scopes say and nothing else."""

import pytest
from starlette.testclient import TestClient

from headwater.store.database import Store
from headwater.store.keys import list_keys, revoke_key
from headwater.web.api.auth import FAILURE_WINDOW_SECONDS, MOST_FAILURES, FailedKeys, neighbourhood
from tests.clock import FakeClock
from tests.web.api.conftest import MakeCaller

STATUS = "/api/collector/status"


def wrong(key: str = "hw_wrong") -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_without_a_key_nothing_is_told(stranger: TestClient) -> None:
    for method, path in (
        ("GET", STATUS),
        ("POST", "/api/feeds/1/refresh"),
        ("POST", "/api/feeds/refresh-all"),
    ):
        answer = stranger.request(method, path)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == 'Bearer realm="Headwater"'
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json() == {
            "type": "about:blank",
            "title": "Unauthorized",
            "status": 401,
            "detail": "this needs an API key, sent as: Authorization: Bearer KEY",
            "instance": path,
        }


@pytest.mark.parametrize(
    "header", ["Bearer", "Basic aHc6eA==", "Bearer hw_x y", "hw_x", "Bearer " + "x" * 5000]
)
def test_what_is_no_key_opens_nothing(stranger: TestClient, header: str) -> None:
    assert stranger.get(STATUS, headers={"Authorization": header}).status_code == 401


def test_a_scope_opens_its_own_and_admin_everything(caller: MakeCaller) -> None:
    opened = {
        scope: (
            caller(scope).get(STATUS).status_code,
            caller(scope).post("/api/feeds/refresh-all").status_code,
        )
        for scope in ("read", "refresh", "admin")
    }
    assert opened == {"read": (200, 403), "refresh": (403, 202), "admin": (200, 202)}
    assert caller("read", "refresh").post("/api/feeds/refresh-all").status_code == 202


def test_a_missing_scope_is_named(caller: MakeCaller) -> None:
    answer = caller("read").post("/api/feeds/refresh-all")
    assert 'error="insufficient_scope", scope="refresh"' in answer.headers["www-authenticate"]
    assert answer.json()["detail"] == "key read has not the scope refresh, which this needs"


def test_a_revoked_key_is_worthless_at_once(caller: MakeCaller, store: Store, clock: FakeClock) -> None:
    reader = caller("read")
    assert reader.get(STATUS).status_code == 200
    with store.writing() as connection:
        revoke_key(connection, 1, clock())
    answer = reader.get(STATUS)
    assert answer.status_code == 401
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]


def test_the_last_use_is_kept_to_the_minute(caller: MakeCaller, store: Store, clock: FakeClock) -> None:
    reader = caller("read")
    seen = []
    for _ in range(3):
        reader.get(STATUS)
        with store.reading() as connection:
            seen.append(list_keys(connection)[0].last_used_at)
        clock.advance(40)
    start = clock() - 120
    assert seen == [start, start, start + 80]


def test_too_many_wrong_keys_shut_the_door_for_a_while(
    stranger: TestClient, caller: MakeCaller, clock: FakeClock
) -> None:
    reader = caller("read")
    for _ in range(MOST_FAILURES):
        assert stranger.get(STATUS, headers=wrong()).status_code == 401
    answer = stranger.get(STATUS, headers=wrong())
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) == FAILURE_WINDOW_SECONDS + 1
    assert reader.get(STATUS).status_code == 429, "whoever guesses right now does not learn of it"
    assert stranger.get(STATUS).status_code == 401, "no key is no guess"
    clock.advance(FAILURE_WINDOW_SECONDS)
    assert reader.get(STATUS).status_code == 200


def test_guesses_are_counted_by_address_in_bounded_memory(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.web.api.auth.MOST_ADDRESSES", 3)
    failed = FailedKeys(clock)
    for _ in range(MOST_FAILURES):
        failed.add("192.0.2.1")
    assert failed.seconds_to_wait("192.0.2.1") == FAILURE_WINDOW_SECONDS
    assert failed.seconds_to_wait("::ffff:192.0.2.1") == FAILURE_WINDOW_SECONDS
    assert failed.seconds_to_wait("192.0.2.2") == 0
    clock.advance(-3600)
    assert failed.seconds_to_wait("192.0.2.1") == 0, "a clock that was set back locks nobody out"
    for number in range(3):
        failed.add(f"198.51.100.{number}")
    clock.advance(3600)
    assert failed.seconds_to_wait("192.0.2.1") == 0, "the oldest is forgotten"


def test_one_ipv6_customer_is_one_caller() -> None:
    assert neighbourhood("2001:db8:1:2::3") == neighbourhood("2001:db8:1:2:ffff::9") == "2001:db8:1:2::/64"
    assert neighbourhood("2001:db8:1:3::3") != neighbourhood("2001:db8:1:2::3")
    assert neighbourhood("testclient") == "testclient"

"""Keys open what their scopes say and nothing else."""

import pytest
from starlette.testclient import TestClient

from headwater.store.core.database import Store
from headwater.store.people.keys import list_keys, revoke_key
from headwater.web.sign_in_limits import FAILURE_WINDOW_SECONDS, MOST_FAILURES
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
    assert answer.json()["detail"] == "key read lacks the scope refresh, which this needs"


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


def test_wrong_keys_are_refused_for_a_while_and_a_right_key_never_is(
    stranger: TestClient, caller: MakeCaller, clock: FakeClock
) -> None:
    reader = caller("read")
    for _ in range(MOST_FAILURES):
        assert stranger.get(STATUS, headers=wrong()).status_code == 401
    answer = stranger.get(STATUS, headers=wrong())
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) == FAILURE_WINDOW_SECONDS + 1
    assert reader.get(STATUS).status_code == 200, "a key is too long to be guessed"
    assert stranger.get(STATUS).status_code == 401, "no key is not a guess"
    clock.advance(FAILURE_WINDOW_SECONDS)
    assert stranger.get(STATUS, headers=wrong()).status_code == 401


def test_wrong_keys_count_by_peer_whatever_the_headers_say(stranger: TestClient) -> None:
    headers = [
        {"X-Forwarded-For": f"192.0.2.{number}", "Forwarded": f"for=192.0.2.{number}"}
        for number in range(MOST_FAILURES + 5)
    ]
    statuses = [stranger.get(STATUS, headers={**wrong(), **each}).status_code for each in headers]
    assert statuses == [401] * MOST_FAILURES + [429] * 5

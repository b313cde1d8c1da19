"""The collector's status, field by field."""

from starlette.testclient import TestClient

from headwater.smart_scheduler import update_source_stats
from headwater.sources.adding import add_unvisited, read_new_source
from headwater.store.collecting.sources import set_schedule_enabled
from headwater.store.core.database import Store
from headwater.store.core.settings import set_setting
from headwater.wording import iso
from tests.clock import FakeClock
from tests.store.collecting.test_queue import claim, done
from tests.web.api.conftest import MakeCaller

STATUS = "/api/collector/status"


def add(store: Store, clock: FakeClock, url: str, kind: str = "rss", **config: float) -> int:
    with store.writing() as connection:
        return add_unvisited(connection, read_new_source(url, kind, config, "One"), clock()).id


def test_a_source_that_was_never_visited(caller: MakeCaller, store: Store, clock: FakeClock) -> None:
    add(store, clock, "https://news.ycombinator.com/", "hackernews")
    assert caller("read").get(STATUS).json() == {
        "sources": [
            {
                "id": 1,
                "name": "One",
                "type": "hackernews",
                "interval_minutes": 60,
                "last_fetched_at": None,
                "next_fetch_at": None,
                "fetch_count": 0,
                "fetch_error_count": 0,
                "last_error": None,
                "status": "ok",
                "state": "pending",
            }
        ],
        "stats": {
            "total_sources": 1,
            "active_sources": 1,
            "paused_sources": 0,
            "paused_by_error": 0,
            "fetches_24h": 0,
            "errors_24h": 0,
            "raw_items_24h": 0,
            "items_24h": 0,
        },
        "next": None,
    }


def test_times_are_told_to_the_millisecond(caller: MakeCaller, store: Store, clock: FakeClock) -> None:
    add(store, clock, "https://one.example/")
    from headwater.model import Plan
    from headwater.store.collecting.queue import settle_batch

    with store.writing() as connection:
        (source,) = claim(connection)
        settle_batch(connection, [done(source, clock(), Plan(clock() + 1.5))])
    (shown,) = caller("read").get(STATUS).json()["sources"]
    assert (shown["last_fetched_at"], shown["next_fetch_at"]) == (
        "2023-11-14T22:13:20.000Z",
        "2023-11-14T22:13:21.500Z",
    )


def test_intervals_are_those_in_force(caller: MakeCaller, store: Store, clock: FakeClock) -> None:
    add(store, clock, "https://one.example/")
    add(store, clock, "https://news.ycombinator.com/", "hackernews")
    add(store, clock, "https://three.example/", fetch_interval_minutes=2.5)
    with store.writing() as connection:
        set_setting(connection, "fetch_interval.hackernews", 15, clock())
    shown = caller("read").get(STATUS).json()["sources"]
    assert [source["interval_minutes"] for source in shown] == [240, 15, 2.5]


def test_paused_source_is_not_active(caller: MakeCaller, store: Store, clock: FakeClock) -> None:
    for number in range(3):
        add(store, clock, f"https://{number}.example/")
    with store.writing() as connection:
        set_schedule_enabled(connection, 2, False, clock())
    answer = caller("read").get(STATUS).json()
    assert [source["status"] for source in answer["sources"]] == ["ok", "off", "ok"]
    numbers = answer["stats"]
    assert [
        numbers[name] for name in ("total_sources", "active_sources", "paused_sources", "paused_by_error")
    ] == [
        3,
        2,
        1,
        0,
    ]


def test_many_sources_come_in_pages(caller: MakeCaller, store: Store, clock: FakeClock) -> None:
    for number in range(5):
        add(store, clock, f"https://{number}.example/")
    reader = caller("read")
    first = reader.get(STATUS, params={"limit": 3}).json()
    second = reader.get(STATUS, params={"limit": 3, "cursor": first["next"]}).json()
    assert [source["id"] for source in first["sources"] + second["sources"]] == [1, 2, 3, 4, 5]
    assert second["next"] is None
    assert first["stats"] == second["stats"]
    assert reader.get(STATUS, params={"cursor": "nonsense"}).status_code == 400


def test_the_description_of_the_api_carries_the_documents_example(stranger: TestClient) -> None:
    schema = stranger.get("/api/openapi.json").json()
    shown = schema["components"]["schemas"]["CollectorSourceView"]["example"]
    assert shown["next_fetch_at"] == "2026-02-25T11:30:00.000Z"
    operation = schema["paths"][STATUS]["get"]
    assert operation["security"] == [{"key": []}]
    assert "application/problem+json" in operation["responses"]["401"]["content"]
    assert "application/problem+json" in operation["responses"]["422"]["content"]
    paths = list(schema["paths"])
    assert paths[0] == STATUS
    assert {"/api/feeds/refresh-all", "/api/feeds/{subscription_id}/refresh"} <= set(paths[:8])


def test_statistics_of_all_and_of_one_source(caller: MakeCaller, store: Store, clock: FakeClock) -> None:
    assert caller("read").get("/api/collector/statistics").json()["hit_rate"] is None
    add(store, clock, "https://one.example/")
    with store.writing() as connection:
        update_source_stats(connection, "1", has_new_entries=True, now=clock(), commit=False)
        update_source_stats(connection, "1", error_message="429", now=clock(), commit=False)
    told = caller("read").get("/api/collector/statistics").json()
    assert (told["total_sources"], told["by_cadence"]["P2"], told["by_frequency"]["daily"]) == (1, 1, 1)
    assert (told["total_checks"], told["total_hits"], told["hit_rate"]) == (2, 1, 0.5)
    assert (told["due_sources"], told["failing_sources"], told["backoff_sources"]) == (1, 1, 1)
    plan = caller("read").get("/api/sources/1/plan").json()
    assert (plan["statistics"]["cadence"], plan["statistics"]["hit_rate"]) == ("P2", 0.5)
    assert plan["statistics"]["backoff_until"] == iso(clock() + 6 * 3600)
    assert caller("refresh").get("/api/collector/statistics").status_code == 403

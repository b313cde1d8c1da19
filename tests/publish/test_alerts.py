"""Alerts are told once, in one message, not in quiet hours; and once more when they are over."""

from pathlib import Path
from typing import Any

import pytest

from headwater.errors import InputError
from headwater.language import Language
from headwater.publish.alerts import KINDS, Watcher, changed_rules, check_rules, is_quiet, tell_problem
from headwater.store.core.database import Store
from headwater.store.core.tables import digests, pipeline_executions, sources
from headwater.store.pipelines.models import Limits, reserve_request
from headwater.store.publishing.alerts import (
    MOST_TOLD,
    QUIET_SECONDS,
    AlertRules,
    Problem,
    forget_alerts,
    get_rules,
    list_alerts,
    note_problems,
    open_alerts,
    set_rules,
)
from headwater.store.publishing.outbox import (
    Delivery,
    DeliveryEnd,
    NewDelivery,
    claim_deliveries,
    list_deliveries,
    put_in_outbox,
    settle_deliveries,
)
from headwater.store.publishing.problems import is_silent
from headwater.store.publishing.targets import Target, add_target
from tests.clock import FakeClock
from tests.pipeline.making import make_items, make_settings, make_template

DAY = 86_400.0
RULES = AlertRules(("team",))


@pytest.fixture
def watcher(store: Store, clock: FakeClock, tmp_path: Path) -> Watcher:
    with store.writing() as connection:
        add_target(connection, Target("team", "webhook", {"url": "http://origin/hook"}), clock())
        set_rules(connection, RULES, clock())
    make_items(store, 0)
    return Watcher(store, make_settings(tmp_path), clock, "en")


def set_source(store: Store, **values: Any) -> None:
    with store.writing() as connection:
        connection.execute(sources.update().values(**values))


def messages(store: Store) -> list[Delivery]:
    with store.reading() as connection:
        return [each for each in list_deliveries(connection) if each.kind == "alert"][::-1]


async def later(watcher: Watcher, clock: FakeClock, seconds: float) -> None:
    clock.advance(seconds)
    await watcher.run_if_due()


async def test_problem_is_told_once_and_once_more_when_it_is_over(
    store: Store, watcher: Watcher, clock: FakeClock
) -> None:
    set_source(store, status="retired", last_error="410 Gone")
    await later(watcher, clock, 0)
    for _ in range(3):
        await later(watcher, clock, 1_000)
    [told] = messages(store)
    assert told.title == "Headwater: A source is gone: 410 Gone"
    assert told.data["alerts"][0]["kind"] == "gone"
    set_source(store, status="ok", last_error=None)
    await later(watcher, clock, 61)
    assert len(messages(store)) == 1, "it may flicker"
    await later(watcher, clock, QUIET_SECONDS)
    await later(watcher, clock, 900)
    _, over = messages(store)
    assert over.title == "Headwater: over: A source is gone: 410 Gone"
    assert over.key != told.key
    await later(watcher, clock, 1_000)
    assert len(messages(store)) == 2
    with store.writing() as connection:
        assert open_alerts(connection) == []
        assert forget_alerts(connection, clock() + 1) == 1


async def test_several_problems_are_one_message_and_not_in_quiet_hours(
    store: Store, watcher: Watcher, clock: FakeClock
) -> None:
    with store.writing() as connection:  # NOON is 22:13 in UTC
        set_rules(connection, changed_rules(RULES, quiet_from="22:00", quiet_until="07:00"), clock())
        note_problems(
            connection, [Problem("gone", str(n), {"name": f"S{n}", "error": ""}) for n in range(30)], clock()
        )
    set_source(store, consecutive_failures=3, last_error_kind="unauthorized", last_error="401")
    await later(watcher, clock, 0)
    assert messages(store) == []
    with store.writing() as connection:
        note_problems(
            connection,
            [Problem("gone", str(n), {"name": f"S{n}", "error": ""}) for n in range(30)]
            + [Problem("credentials", "1", {"name": "A source", "error": "401"})],
            clock() + 9 * 3_600 - 60,
        )
    await later(watcher, clock, 9 * 3_600)
    [told] = messages(store)
    assert told.title == "Headwater: 31 problems"
    assert "A source needs its owner: 401" in told.text
    assert "… and 10 more" in told.text
    assert "<li>A source needs its owner: 401</li>" in (told.html or "")


async def test_alert_that_is_over_before_it_was_told_is_never_told(
    store: Store, watcher: Watcher, clock: FakeClock
) -> None:
    with store.writing() as connection:
        note_problems(connection, [Problem("disk", "", {"free": "0.1", "place": "/"})], clock())
        note_problems(connection, [], clock() + QUIET_SECONDS)
    await later(watcher, clock, QUIET_SECONDS + 1)
    assert messages(store) == []
    with store.reading() as connection:
        [alert] = list_alerts(connection)
    assert alert.ended_at is not None


async def test_every_kind_of_problem_is_found(store: Store, watcher: Watcher, clock: FakeClock) -> None:
    template = make_template(store, {"step_type": "filter_content"})
    item_ids = make_items(store, 6, source_id=2)
    with store.writing() as connection:
        connection.execute(
            pipeline_executions.insert(),
            [
                {
                    "template_id": template.id,
                    "template_name": "A template",
                    "item_id": item_id,
                    "item_version": 1,
                    "status": "failed",
                    "completed_at": clock() - 60,
                    "created_at": clock() - 90,
                }
                for item_id in item_ids
            ],
        )
        assert not reserve_request(connection, "template:1", "m", clock(), own=Limits(0), all_=Limits())
        add_target(connection, Target("down", "webhook", {"url": "http://origin/no"}), clock())
        put_in_outbox(connection, [NewDelivery("down", "k", "T", "t")], "item", clock())
        [claimed] = claim_deliveries(connection, 1, now=clock(), lease_until=clock() + 9)
        settle_deliveries(connection, [DeliveryEnd(claimed, "failed", clock(), error_message="503")])
        connection.execute(
            digests.insert().values(
                name="d",
                title="D",
                schedule="daily 07:00",
                due_at=0,
                claim_at=clock() + 9,
                attempts=3,
                error_message="no",
                created_at=0,
                updated_at=0,
            )
        )
        changed = sources.update().where(sources.c.id == 1)
        failing = {"consecutive_failures": 9, "last_error": "503", "failing_since_at": clock() - 4 * DAY}
        connection.execute(changed.values(**failing))
        structure = {"consecutive_failures": 1, "last_error_kind": "changed_structure", "last_error": "empty"}
        connection.execute(sources.update().where(sources.c.id == 2).values(**structure))
        connection.execute(sources.update().values(due_at=clock() - 5_000))
    await watcher.look(RULES, clock())
    with store.reading() as connection:
        found = {alert.kind: tell_problem(alert, "en") for alert in open_alerts(connection)}
    assert found == {
        "failing": "A source has been failing for 4 days: 503",
        "structure": "A source: its config no longer matches the page: empty",
        "pipeline": "the pipeline A template fails: 6 of 6 runs in 24 hours",
        "budget": "the budget of the model for today is spent: template:1",
        "delivery": "1 message to down could not be sent: 503",
        "digest": "the digest d cannot be made: no",
        "lag": f"the collector is late: a source has been waiting for {found['lag'].split('for ')[-1]}",
    }
    with store.writing() as connection:
        rules = set_rules(connection, changed_rules(RULES, off=("lag", "digest")), clock())
    clock.advance(QUIET_SECONDS)
    await watcher.look(rules, clock())
    with store.reading() as connection:
        assert {"lag", "digest"}.isdisjoint(alert.kind for alert in open_alerts(connection))


async def test_silent_source_is_found_and_over_when_it_publishes_again(
    store: Store, watcher: Watcher, clock: FakeClock
) -> None:
    from headwater.model import Item
    from headwater.store.reading.items import ItemChange, write_items

    def publish(*days_ago: float) -> None:
        changes = tuple(
            ItemChange(
                "new", Item(str(at), published_at=at), str(at).encode(), str(at).encode(), (), b"h", at
            )
            for at in (clock() - days * DAY for days in days_ago)
        )
        with store.writing() as connection:
            write_items(connection, [(1, changes, clock())])
        set_source(store, last_entry_at=clock() - min(days_ago) * DAY, last_fetched_at=clock())

    publish(*(10 + n for n in range(8)))
    await later(watcher, clock, 0)
    [told] = messages(store)
    assert told.title == "Headwater: A source has published nothing for 10 days, although it used to"
    publish(0.1)
    await later(watcher, clock, 1_000)
    await later(watcher, clock, 1_000)
    assert [each.title for each in messages(store)][1:] == [told.title.replace("A source", "over: A source")]


def test_is_silent_needs_a_habit() -> None:
    assert not is_silent([0.0, DAY], 99 * DAY)
    daily = [n * DAY for n in range(10)]
    assert not is_silent(daily, 15 * DAY)
    assert is_silent(daily, 17 * DAY)
    assert not is_silent([*daily, 40 * DAY], 60 * DAY), "it has paused before"


async def test_without_targets_nothing_is_looked_for(
    store: Store, watcher: Watcher, clock: FakeClock
) -> None:
    set_source(store, status="retired")
    with store.writing() as connection:
        set_rules(connection, changed_rules(RULES, targets=()), clock())
    assert not await watcher.run_if_due()
    with store.reading() as connection:
        assert list_alerts(connection) == []
        assert get_rules(connection).targets == ()


@pytest.mark.parametrize(
    ("hour", "quiet"),
    [("21:59", False), ("22:00", True), ("03:00", True), ("07:00", False), ("12:00", False)],
)
def test_is_quiet_over_midnight(hour: str, quiet: bool) -> None:
    from datetime import datetime
    from zoneinfo import ZoneInfo

    rules = AlertRules(quiet_from="22:00", quiet_until="07:00", zone="Asia/Shanghai")
    at = datetime.fromisoformat(f"2026-03-01T{hour}").replace(tzinfo=ZoneInfo("Asia/Shanghai")).timestamp()
    assert is_quiet(rules, at) is quiet


@pytest.mark.parametrize(
    "changes",
    [
        {"off": ("weather",)},
        {"quiet_from": "22:00"},
        {"quiet_from": "25:00", "quiet_until": "07:00"},
        {"failing_days": 0},
        {"every_minutes": 0},
        {"zone": "Moon"},
    ],
)
def test_rules_that_cannot_be_followed_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        changed_rules(AlertRules(), **changes)
    assert check_rules(AlertRules())


def test_every_kind_can_be_told() -> None:
    values = {
        "name": "n",
        "error": "e",
        "days": 1,
        "failed": 1,
        "count": 2,
        "free": "1",
        "place": "/",
        "seconds": 9,
    }
    for kind in KINDS:
        languages: tuple[Language, ...] = ("en", "zh")
        for language in languages:
            assert "{" not in tell_problem(Problem(kind, "1", values), language)
    assert tell_problem(Problem("unheard of", "7")) == "unheard of 7"
    assert MOST_TOLD > 0

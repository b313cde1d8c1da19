"""People's rules: what they match, what they do with new items, and that each item meets them once."""

import asyncio
from typing import Any

import pytest

from headwater.errors import ConflictError, InputError, NotFoundError
from headwater.model import Item
from headwater.people.follower import Follower
from headwater.people.rules import matches, read_filter, read_week, subject_of, try_filter
from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from headwater.store.people.entries import read_entries
from headwater.store.people.marks import list_tags
from headwater.store.people.reading import unread_counts
from headwater.store.people.rules import (
    Rule,
    RuleActions,
    add_rule,
    followed_position,
    list_notifications,
    list_rules,
    note_followed,
    note_notifications_seen,
    read_new_items,
)
from headwater.store.people.subscriptions import subscribe
from headwater.store.people.users import add_user
from headwater.store.reading.items import ItemChange, write_items
from tests.clock import FakeClock


def source(store: Store, name: str, now: float) -> int:
    with store.writing() as connection:
        return add_source(connection, name=name, type="rss.feed", url=f"https://{name}.example/", now=now).id


def reader(store: Store, name: str, now: float, *source_ids: int) -> int:
    with store.writing() as connection:
        user = add_user(connection, name=name, now=now)
        for source_id in source_ids:
            subscribe(connection, user.id, source_id, now)
        return user.id


def arrive(store: Store, source_id: int, now: float, *items: Item) -> None:
    changes = tuple(
        ItemChange(
            "new",
            item,
            item.external_id.encode(),
            item.external_id.encode(),
            (),
            b"hash",
            item.published_at or now,
        )
        for item in items
    )
    with store.writing() as connection:
        write_items(connection, [(source_id, changes, now)])


def follow(store: Store, clock: FakeClock) -> None:
    async def run() -> None:
        follower = Follower(store, clock)
        while await follower.run_once():
            pass

    asyncio.run(run())


def rule(
    store: Store,
    user_id: int,
    now: float,
    actions: RuleActions,
    source_ids: tuple[int, ...] = (),
    **given: Any,
) -> Rule:
    with store.writing() as connection:
        number = len(list_rules(connection, user_id))
        return add_rule(
            connection, Rule(0, user_id, f"rule {number}", read_filter(given), source_ids, actions), now
        )


def states(store: Store, user_id: int, source_id: int) -> dict[str, Any]:
    with store.reading() as connection:
        numbers = [
            row[0]
            for row in connection.exec_driver_sql(f"SELECT id FROM items WHERE source_id = {source_id}")
        ]
        return {each.item.title: each.state for each in read_entries(connection, user_id, numbers)}


def test_rule_acts_on_new_items_of_its_owner_alone(store: Store, clock: FakeClock) -> None:
    news = source(store, "news", clock())
    li, ann = reader(store, "li", clock(), news), reader(store, "ann", clock(), news)
    follow(store, clock)
    rule(store, li, clock(), RuleActions(mute=True), include_keywords=["Football"])
    rule(store, li, clock(), RuleActions(star=True, tags=("城市",)), include_patterns=["桥|bridge"])
    rule(store, li, clock(), RuleActions(read_later=True, read_later_days=1), authors=["Ann Walker"])
    arrive(
        store,
        news,
        clock(),
        Item("1", title="FOOTBALL tonight"),
        Item("2", title="新桥通车"),
        Item("3", title="Essay", author="ann walker"),
        Item("4", title="Weather"),
    )
    follow(store, clock)
    found = states(store, li, news)
    assert [title for title, state in found.items() if state.is_read] == ["FOOTBALL tonight"]
    assert found["新桥通车"].tags == ("城市",)
    assert found["新桥通车"].starred_at == clock()
    assert found["Essay"].later_until == clock() + 86_400
    assert found["Weather"] == states(store, ann, news)["Weather"]
    assert not any(state.is_read or state.starred_at for state in states(store, ann, news).values())
    with store.reading() as connection:
        assert [each.count for each in unread_counts(connection, li)] == [3]
        assert [each.matched for each in list_rules(connection, li)] == [1, 1, 1]
        assert list_tags(connection, ann) == []


def test_rule_leaves_alone_what_was_stored_before_it_is_first_followed(
    store: Store, clock: FakeClock
) -> None:
    news = source(store, "news", clock())
    li = reader(store, "li", clock(), news)
    arrive(store, news, clock(), Item("1", title="football"))
    rule(store, li, clock(), RuleActions(star=True), include_keywords=["football"])
    follow(store, clock)
    assert states(store, li, news)["football"].starred_at is None


def test_rule_of_a_source_leaves_other_sources_alone(store: Store, clock: FakeClock) -> None:
    news, blog = source(store, "news", clock()), source(store, "blog", clock())
    li = reader(store, "li", clock(), news, blog)
    follow(store, clock)
    rule(store, li, clock(), RuleActions(star=True), (blog,), include_keywords=["bridge"])
    arrive(store, news, clock(), Item("1", title="bridge"))
    arrive(store, blog, clock(), Item("1", title="bridge"))
    follow(store, clock)
    assert states(store, li, news)["bridge"].starred_at is None
    assert states(store, li, blog)["bridge"].starred_at is not None
    with pytest.raises(NotFoundError, match="you do not subscribe to source 99"):
        rule(store, li, clock(), RuleActions(star=True), (99,), include_keywords=["x"])


def test_item_meets_the_rules_once_however_many_workers_follow(store: Store, clock: FakeClock) -> None:
    news = source(store, "news", clock())
    li = reader(store, "li", clock(), news)
    follow(store, clock)
    rule(store, li, clock(), RuleActions(mute=True), include_keywords=["football"])
    arrive(store, news, clock(), Item("1", title="football"))
    with store.reading() as connection:
        new = read_new_items(connection, 10)
    follow(store, clock)
    with store.writing() as connection:
        assert not note_followed(connection, new, [], clock())
        assert followed_position(connection) == new.until
    follow(store, clock)
    with store.reading() as connection:
        assert [each.matched for each in list_rules(connection, li)] == [1]


def test_notification_is_kept_until_seen_and_old_items_are_not_told(store: Store, clock: FakeClock) -> None:
    news = source(store, "news", clock())
    li = reader(store, "li", clock(), news)
    follow(store, clock)
    rule(store, li, clock(), RuleActions(notify=True), include_keywords=["bridge"])
    long_ago = Item("2", title="bridge of old", published_at=clock() - 30 * 86_400)
    arrive(store, news, clock(), Item("1", title="bridge", url="https://news.example/1"), long_ago)
    follow(store, clock)
    with store.writing() as connection:
        told = list_notifications(connection, li, limit=10)
        assert [(each.title, each.url, each.rule_name) for each in told] == [
            ("bridge", "https://news.example/1", "rule 0")
        ]
        assert note_notifications_seen(connection, li, told[0].id, clock()) == 1
        assert list_notifications(connection, li, limit=10)[0].seen_at == clock()


def test_trial_counts_the_last_week_and_changes_nothing(store: Store, clock: FakeClock) -> None:
    news = source(store, "news", clock())
    li = reader(store, "li", clock(), news)
    arrive(store, news, clock() - 8 * 86_400, Item("0", title="bridge of last month"))
    arrive(
        store, news, clock(), *(Item(str(n), title="bridge" if n % 10 == 0 else "road") for n in range(1, 41))
    )
    with store.reading() as connection:
        week, is_cut = read_week(connection, li, (), clock())
    trial = try_filter(read_filter({"include_keywords": ["bridge"]}), week, is_cut=is_cut)
    assert (trial.matched, trial.considered, trial.is_cut) == (4, 40, False)
    assert {each.title for each in trial.examples} == {"bridge"}
    assert not any(state.is_read for state in states(store, li, news).values() if state.starred_at)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "would match every item"),
        ({"look_in": ["title"]}, "would match every item"),
        ({"include_patterns": ["("]}, "not a regular expression"),
        ({"include_patterns": ["(a{40}){40}"]}, "repeats too often"),
        ({"include_patterns": ["a"] * 21}, "at most 20 regular expressions"),
        ({"include_keywords": ["x" * 20_000]}, "too long"),
        ({"include_keywords": ["\ud800"]}, "characters"),
        ({"where": "]"}, "not a JMESPath expression"),
        ({"colour": "red"}, "wrong at colour"),
    ],
)
def test_filter_that_cannot_be_used_is_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read_filter(given)


def test_heavy_expression_matches_nothing_and_ends(store: Store, clock: FakeClock) -> None:
    news = source(store, "news", clock())
    li = reader(store, "li", clock(), news)
    arrive(store, news, clock(), Item("1", title="a" * 5_000, content="b" * 15_000))
    with store.reading() as connection:
        week, _ = read_week(connection, li, (), clock())
    doubling = "[@,@]" + " | [@,@]" * 40 + " | to_string(@)"
    assert not matches(read_filter({"where": doubling}), subject_of(week[0]))


def test_rule_needs_a_unique_name_and_something_to_do(store: Store, clock: FakeClock) -> None:
    li = reader(store, "li", clock())
    with store.writing() as connection:
        wanted = Rule(0, li, "  Mine ", {"include_keywords": ["x"]}, (), RuleActions(star=True))
        assert add_rule(connection, wanted, clock()).name == "Mine"
        with pytest.raises(ConflictError):
            add_rule(connection, wanted, clock())
        with pytest.raises(InputError, match="needs something to do"):
            add_rule(connection, Rule(0, li, "Other", {"include_keywords": ["x"]}), clock())
        with pytest.raises(InputError, match="needs a name"):
            add_rule(connection, Rule(0, li, " ", {}, (), RuleActions(star=True)), clock())

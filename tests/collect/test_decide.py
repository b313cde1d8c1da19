"""What is new, what has changed, what is an old acquaintance under a new name."""

from dataclasses import replace

import pytest

from headwater.collect.decide import Decision, candidates, decide, item_time, keys_of
from headwater.model import Item
from tests.clock import NOON

POST = Item("guid-1", "http://one.example/post/1", "A title", content="<p>text</p>", published_at=NOON - 500)


def after(old: list[Item], new: list[Item], *, now: float = NOON) -> Decision:
    """Decide on `new` when `old` is what earlier visits have stored."""
    known: dict[bytes, bytes] = {}
    for change in decide(candidates(tuple(old), now), {}, now=now, has_history=False).changes:
        known |= dict.fromkeys(change.keys, change.content_hash)
    return decide(candidates(tuple(new), now), known, now=now, has_history=bool(old))


def kinds(decision: Decision) -> list[str]:
    return [change.kind for change in decision.changes]


def test_unseen_items_are_new_and_seen_ones_are_not() -> None:
    other = replace(POST, external_id="guid-2", url="http://one.example/post/2")
    decision = after([POST], [POST, other])
    assert [change.item for change in decision.changes] == [other]
    assert (decision.new_count, decision.updated_count, decision.item_times) == (1, 0, (NOON - 500,))


@pytest.mark.parametrize(
    "changed",
    [
        replace(POST, title="Another title"),
        replace(POST, content="<p>more text</p>"),
        replace(POST, summary="now with a summary"),
    ],
)
def test_a_changed_item_is_a_new_version(changed: Item) -> None:
    assert kinds(after([POST], [changed])) == ["changed"]


def test_a_newer_updated_date_alone_is_a_change() -> None:
    old, new = replace(POST, updated_at=NOON - 400), replace(POST, updated_at=NOON - 300)
    assert kinds(after([old], [new])) == ["changed"]


def test_an_updated_date_made_by_our_own_visit_is_none() -> None:
    """Some generators stamp every item with the time of the request."""
    old = [replace(POST, updated_at=NOON - 9)]
    assert kinds(after(old, [replace(POST, updated_at=NOON - 1)])) == []
    many = [replace(POST, external_id=str(number), updated_at=NOON - 4000) for number in range(3)]
    restamped = [replace(item, updated_at=NOON - 400) for item in many]
    assert kinds(after(many, restamped)) == []


@pytest.mark.parametrize(
    "moved",
    [
        replace(POST, external_id="a-new-scheme/1"),
        replace(POST, external_id="x", url="https://one.example/post/1"),
        replace(POST, external_id="x", url="https://moved.example/post/1/"),
    ],
)
def test_a_publisher_who_changes_ids_or_moves_house_brings_nothing_new(moved: Item) -> None:
    decision = after([POST], [moved])
    assert kinds(decision) == ["renamed"]
    assert decision.item_times == ()
    assert not decision.overflow


def test_an_id_that_is_an_address_is_the_same_under_https() -> None:
    old = replace(POST, external_id="http://one.example/post/1", published_at=None)
    assert kinds(after([old], [replace(old, external_id="https://one.example/post/1")])) == []


def test_items_that_only_look_alike_are_all_kept() -> None:
    """Identity errs on the side of a second copy: a daily note under one address must not swallow the next."""
    note = Item("monday", "http://one.example/menu", "Menu", published_at=NOON - 9000)
    tuesday = replace(note, external_id="tuesday", published_at=NOON - 600)
    assert kinds(after([note], [tuesday])) == ["new"]
    bare = Item("1", "http://one.example/status", "All is well")
    assert kinds(after([bare], [replace(bare, external_id="2")])) == ["new"]
    twin = replace(POST, external_id="guid-2")
    assert kinds(after([POST], [POST, twin])) == ["new"], "its look-alike is still there under its own id"


def test_one_id_for_different_things_is_no_id() -> None:
    items = [replace(POST, external_id="0", url=f"http://one.example/{n}", title=f"T{n}") for n in range(3)]
    assert kinds(after([], items)) == ["new"] * 3
    assert kinds(after(items, items)) == []


def test_the_same_item_twice_in_a_document_is_one() -> None:
    assert kinds(after([], [POST, POST])) == ["new"]


def test_overflow_is_a_full_feed_that_shares_nothing_with_the_last_visit() -> None:
    other = replace(POST, external_id="guid-2", url="http://one.example/2", published_at=NOON - 1)
    assert after([POST], [other]).overflow
    assert not after([POST], [POST, other]).overflow
    assert not after([], [other]).overflow, "a first visit"
    assert not after([POST], []).overflow, "an empty document"


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (Item("1", published_at=NOON - 60), (NOON - 60, False)),
        (Item("1", updated_at=NOON - 70), (NOON - 70, False)),
        (Item("1"), (NOON, True)),
        (Item("1", published_at=0.0), (NOON, True)),
        (Item("1", published_at=NOON + 3600), (NOON, False)),
        (Item("1", published_at=NOON + 90_000), (NOON, True)),
    ],
)
def test_dates_are_capped_and_invented_ones_are_marked(item: Item, expected: tuple[float, bool]) -> None:
    assert item_time(item, NOON) == expected


def test_keys_are_looked_up_for_everything_found() -> None:
    found = candidates((POST, Item("undated", title="x")), NOON)
    assert len(keys_of(found)) == 3, "an undated item with no text has no likeness"


def test_lone_surrogates_do_not_break_identity() -> None:
    assert kinds(after([], [Item("\ud800", title="\udfff")])) == ["new"]

"""What is new, what has changed, what is an old acquaintance under a new name."""

from dataclasses import replace

import pytest

from headwater.collect.decide import (
    Decision,
    _differs,
    by_address,
    candidates,
    decide,
    fallback_ids,
    id_key,
    imported_keys,
    is_outdated,
    item_time,
)
from headwater.model import Item
from headwater.store.reading.items import UNKNOWN_CONTENT, Known
from tests.clock import NOON

POST = Item("guid-1", "http://one.example/post/1", "A title", content="<p>text</p>", published_at=NOON - 500)


TEXT = "<p>" + "a text that is long enough to tell one item from another " * 3 + "</p>"


class Memory:
    """A source's memory, as the database keeps it from visit to visit."""

    def __init__(self) -> None:
        self.known: dict[bytes, Known] = {}
        self.stored: dict[bytes, Item] = {}

    def of(self, keys: list[bytes]) -> dict[bytes, Known]:
        return {key: self.known[key] for key in keys if key in self.known}

    def visit(self, items: list[Item], now: float = NOON) -> Decision:
        found = candidates(tuple(items), now)
        looked_up = self.of([candidate.id_key for candidate in found])
        looked_up |= self.of(fallback_ids(found, looked_up))
        decision = decide(found, looked_up, now=now, has_history=bool(self.known))
        assert decision == decide(found, self.known, now=now, has_history=bool(self.known))
        for change in decision.changes:
            item_key = change.item_key
            if change.kind == "renamed":
                self.stored.pop(item_key)
                self.known = {
                    key: replace(memory, item_key=change.id_key) if memory.item_key == item_key else memory
                    for key, memory in self.known.items()
                }
                item_key = change.id_key
            self.stored[item_key] = change.item
            for key in (change.id_key, *change.likenesses):
                self.known[key] = Known(item_key, change.content_hash)
        return decision


def after(old: list[Item], new: list[Item], *, now: float = NOON) -> Decision:
    """Decide on `new` when `old` is what an earlier visit has stored."""
    memory = Memory()
    if old:
        memory.visit(old, now)
    return memory.visit(new, now)


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
    """Also as the window moves on, when each of them is the first of its document for a while."""
    items = [
        replace(POST, external_id="same", url=f"http://one.example/{n}", title=f"T{n}") for n in range(9)
    ]
    memory = Memory()
    for end in range(2, 10):
        decision = memory.visit(items[max(end - 3, 0) : end][::-1])
        assert kinds(decision) == (["new", "new"] if end == 2 else ["new"])
    assert {item.title for item in memory.stored.values()} == {f"T{n}" for n in range(9)}


def test_a_changed_scheme_of_ids_renames_each_to_its_own() -> None:
    """Items with one title and one date are still told apart by their addresses."""
    old = [replace(POST, external_id=f"old{n}", url=f"http://one.example/{n}") for n in range(3)]
    memory = Memory()
    memory.visit(old)
    renamed = [replace(item, external_id=f"new{n}") for n, item in enumerate(old)]
    assert kinds(memory.visit(renamed)) == ["renamed"] * 3
    assert {item.external_id: item.url for item in memory.stored.values()} == {
        f"new{n}": f"http://one.example/{n}" for n in range(3)
    }
    assert kinds(memory.visit(renamed)) == []
    assert kinds(memory.visit(old)) == [], "and back again"


def test_notes_without_title_or_address_are_told_apart_by_their_text() -> None:
    """A day's second note must not be taken for the first, which has left the document."""
    day = NOON - 86_400
    notes = [Item(f"n{n}", content=TEXT.replace("one", str(n)), published_at=day) for n in range(3)]
    memory = Memory()
    for note in notes:
        assert kinds(memory.visit([note])) == ["new"]
    assert kinds(memory.visit([replace(notes[2], external_id="other")])) == ["renamed"]


def test_a_recurring_post_is_new_each_time() -> None:
    weekly = Item("w1", "http://one.example/threads/1", "Open thread", content=TEXT, published_at=NOON - 9e5)
    again = replace(weekly, external_id="w2", url="http://one.example/threads/2", published_at=NOON - 3e5)
    assert kinds(after([weekly], [again])) == ["new"]
    undated = replace(weekly, published_at=None)
    assert kinds(after([undated], [replace(again, published_at=None)])) == ["new"]


def test_a_site_that_moves_everything_is_known_by_its_texts() -> None:
    old = Item(
        "http://old.example/2024/1", "http://old.example/2024/1", "T", content=TEXT, published_at=NOON - 500
    )
    new = replace(old, external_id="https://new.example/posts/t", url="https://new.example/posts/t")
    assert kinds(after([old], [new])) == ["renamed"]


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


def test_likenesses_are_looked_up_of_those_whose_ids_are_unknown() -> None:
    found = candidates(
        (POST, replace(POST, external_id="long", content=TEXT), Item("undated", title="x")), NOON
    )
    assert fallback_ids(found, {found[0].id_key}) == [*found[1].likenesses]
    assert len(found[1].likenesses) == 2
    assert not found[2].likenesses, "an undated item with no text has no likeness"


def test_lone_surrogates_do_not_break_identity() -> None:
    assert kinds(after([], [Item("\ud800", title="\udfff")])) == ["new"]


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        (None, {"transcripts": [{"url": "https://e.org/t.vtt"}]}, True),
        ({"chapters": [{"start": "0", "title": "a"}]}, {"chapters": [{"start": "0", "title": "b"}]}, True),
        (None, {"value": [{"type": "lightning"}]}, False),
        ({"value": [{"type": "lightning"}]}, {"value": [{"type": "other"}]}, False),
        ({"extensions": {"urn:x": {"hits": ["1"]}}}, {"extensions": {"urn:x": {"hits": ["2"]}}}, False),
    ],
)
def test_item_is_changed_only_where_a_reader_sees_it(
    before: dict[str, object] | None, after: dict[str, object], changed: bool
) -> None:
    (old,) = candidates((Item("1", title="x", extras=before),), NOON)
    (new,) = candidates((Item("1", title="x", extras=after),), NOON)
    assert (old.content_hash != new.content_hash) == changed
    assert old.likenesses == new.likenesses


def test_content_that_was_never_read_is_not_a_change() -> None:
    """Of an item that was seen elsewhere only the id is known: its first text must not count as an edit."""
    assert not _differs(UNKNOWN_CONTENT, bytes(24))
    assert _differs(bytes(24), bytes([1]) * 24)


@pytest.mark.parametrize("item", [Item("1", published_at=NOON + 3600), Item("1", updated_at=NOON + 3600)])
def test_decision_tells_the_stated_time_of_an_item_that_is_ahead(item: Item) -> None:
    decision = after([], [item])
    assert decision.item_times == (NOON + 3600,)
    assert decision.changes[0].item_at == NOON


def test_undated_items_are_told_with_the_time_they_were_first_seen() -> None:
    assert after([], [Item("1")]).item_times == (NOON,)


@pytest.mark.parametrize(
    "place",
    ["/straße/1", "/post/1?title=ü", "/wiki/A^B", "/post/1?q=a b", "/"],
    ids=repr,
)
def test_unusual_addresses_are_places_too(place: str) -> None:
    old = Item("1", f"https://one.example{place}", "A title", published_at=NOON - 500)
    moved = replace(old, external_id="2", url=f"http://two.example{place}")
    elsewhere = replace(moved, url="https://two.example/another/place")
    front = place == "/"
    assert kinds(after([old], [moved])) == (["new"] if front else ["renamed"]), "a front page is not a place"
    assert kinds(after([old], [elsewhere])) == ["new"]


@pytest.mark.parametrize("url", ["https://[one.example/post", "ftp://one.example/post", None])
def test_items_without_a_usable_address_have_no_place(url: str | None) -> None:
    old = Item("1", url, "A title", published_at=NOON - 500)
    assert not candidates((old,), NOON)[0].likenesses


@pytest.mark.parametrize(
    ("external_id", "url", "found"),
    [
        ("guid-1", "https://one.example/1", Item("guid-1", "https://elsewhere.example/")),
        ("guid-1", "https://one.example/1", Item("other", "http://one.example/1")),
        (None, "https://one.example/1", Item("https://one.example/1", "https://one.example/1")),
        (None, "https://one.example/1", Item("other", "https://one.example/1")),
        ("guid-1", None, Item("guid-1")),
    ],
)
def test_entry_read_elsewhere_is_recognised_by_its_id_or_its_address(
    external_id: str | None, url: str | None, found: Item
) -> None:
    keys = imported_keys(external_id, url)
    [candidate] = by_address(candidates((found,), NOON))
    assert {candidate.id_key, *candidate.likenesses} & keys.keys()
    assert set(keys.values()) == {next(iter(keys))}, "all of them lead to one item"


def test_entry_read_elsewhere_is_recognised_by_nothing_else() -> None:
    assert imported_keys(None, None) == {}
    assert next(iter(imported_keys("guid-1", "https://one.example/1"))) == id_key("guid-1")
    keys = imported_keys("guid-1", "https://one.example/1")
    [other] = by_address(candidates((Item("https://one.example/1", "https://two.example/1"),), NOON))
    assert not {other.id_key, *other.likenesses} & keys.keys(), "with an id, an address is not an id"


def test_version_is_outdated_by_its_date_or_because_it_was_replaced_before() -> None:
    def of(content: str, updated_at: float | None = None) -> bytes:
        [candidate] = candidates((replace(POST, content=content, updated_at=updated_at),), NOON)
        return candidate.content_hash

    def outdated(known: bytes, found: bytes, *earlier: bytes) -> bool:
        [candidate] = candidates((POST,), NOON)
        return is_outdated(replace(candidate, content_hash=found), Known(b"k", known), earlier)

    assert outdated(of("b", NOON - 500), of("a", NOON - 900)), "its own date is earlier"
    assert not outdated(of("b", NOON - 900), of("a", NOON - 500), of("a")), "its own date is later"
    assert outdated(of("b"), of("a"), of("x"), of("a")), "it was replaced by what is known"
    assert not outdated(of("b"), of("c"), of("a")), "it was never seen"
    assert not outdated(of("a"), of("a"), of("a")), "it is what is known"

"""What is stored of a result: so many items, and of each so much."""

from dataclasses import replace

from headwater.collect.bounding import MOST_CHARACTERS, bound_items, bound_result
from headwater.collectors.base import FetchResult
from headwater.markup import LONGEST_LINE, LONGEST_TEXT, LONGEST_URL, MOST_PARTS
from headwater.model import Enclosure, Item, SourceMetadata


def test_bound_items_leaves_usual_items_as_they_are() -> None:
    items = (
        Item("1", title="t", content="<p>x</p>"),
        Item("2", categories=("a",), enclosures=(Enclosure("u"),)),
    )
    assert bound_items(items) is items


def test_bound_items_cuts_categories_where_nothing_else_is_long() -> None:
    long = ("x" * (LONGEST_LINE + 1),)
    many = ("x",) * (MOST_PARTS + 1)
    first, second = bound_items((Item("1", categories=long), Item("2", categories=many)))
    assert first.cut and len(first.categories[0]) == LONGEST_LINE
    assert second.cut and len(second.categories) == MOST_PARTS


def test_bound_items_cuts_every_field_and_says_so() -> None:
    long = "x" * (LONGEST_TEXT + 1)
    (item,) = bound_items(
        (
            Item(
                long,
                url="https://example.org/" + long,
                title=long,
                author=long,
                summary="<div>" * 200_000,
                content=long,
                image_url=long,
                extras={"persons": [{"name": "n"}] * 100_000},
                categories=(long,) * (MOST_PARTS + 1),
                enclosures=(Enclosure("u", title=long),) * (MOST_PARTS + 1) + (Enclosure(long),),
            ),
        )
    )
    assert item.cut
    assert max(map(len, (item.external_id, item.title, item.author or ""))) == LONGEST_LINE
    assert len(item.summary or "") < 1_000
    assert len(item.content or "") == LONGEST_TEXT
    assert (item.url, item.image_url, item.extras) == (None, None, None)
    assert len(item.categories) == len(item.enclosures) == MOST_PARTS
    assert all(len(each.url) <= LONGEST_URL for each in item.enclosures)
    assert bound_items((item,)) == (item,)


def test_bound_items_bounds_all_texts_of_a_visit_together() -> None:
    items = tuple(
        Item(str(n), content="x" * LONGEST_TEXT) for n in range(MOST_CHARACTERS // LONGEST_TEXT + 2)
    )
    found = bound_items(items)
    assert sum(len(item.content or "") for item in found) == MOST_CHARACTERS
    assert [item.cut for item in found[-2:]] == [True, True]


def test_bound_result_of_too_many_items_takes_the_first_and_counts_the_rest() -> None:
    items = tuple(Item(str(n)) for n in range(12))
    result, note = bound_result(FetchResult(items=items, beyond_count=30), 5)
    assert result.items == items[:5]
    assert note is not None
    assert str(note).startswith("items left out, beyond the 5 that are read of one document: 37 ")
    assert note.render("zh").startswith("一个文档最多读取 5 个条目")
    assert bound_result(replace(result, beyond_count=0), 5) == (replace(result, beyond_count=0), None)


def test_bound_result_drops_addresses_that_would_run_something() -> None:
    trap = "javascript:alert(1)"
    good = Enclosure("https://example.org/a.mp3")
    item = Item(
        trap, url=trap, image_url="data:text/html,x", comments_url=trap, enclosures=(Enclosure(trap), good)
    )
    about = SourceMetadata(title="t", site_url=trap, icon_url="/icon.png")
    result, _ = bound_result(FetchResult(items=(item,), metadata=about), 5)
    assert result.items == (Item(trap, enclosures=(good,)),)
    assert not result.items[0].cut, "nothing was too large"
    assert result.metadata == SourceMetadata(title="t", icon_url="/icon.png")

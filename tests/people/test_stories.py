"""The same story in several sources: found in a labelled set, and shown once."""

import tomllib
from collections.abc import Iterator
from itertools import combinations, product
from pathlib import Path

import pytest

from headwater.people.stories import (
    Telling,
    canonical_address,
    is_same_story,
    is_worth_comparing,
    marks_of,
    telling_of,
)

DATA = Path(__file__).parent.parent / "data" / "same_story.toml"
Pair = tuple[Telling, Telling, bool]


def told(title: str, text: str) -> Telling:
    return telling_of(title, f"<p>{text}</p>", None)


def shortened(title: str, text: str) -> Telling:
    """The beginning alone, as feeds with summaries have it."""
    return told(title, text[: len(text) * 6 // 10] + "…")


def pairs() -> Iterator[Pair]:
    labelled = tomllib.loads(DATA.read_text(encoding="utf-8"))
    for story in labelled["story"]:
        tellings = [told(*each) for each in story["tellings"]]
        tellings.append(shortened(story["tellings"][0][0], story["tellings"][2][1]))
        near = [told(*each) for each in story["near"]]
        yield from ((one, other, True) for one, other in combinations(tellings, 2))
        yield from ((one, other, False) for one, other in product(tellings, near))
        yield from ((one, other, False) for one, other in combinations(near, 2))
    for template in labelled["template"]:
        items = [told(*each) for each in template["items"]]
        yield from ((one, other, False) for one, other in combinations(items, 2))


def is_found(one: Telling, other: Telling) -> bool:
    """As the follower finds it: they share a key, then enough of their sketches, then are alike."""
    first, second = marks_of(one), marks_of(other)
    shared = set(first.keys) & set(second.keys)
    is_compared = shared & first.sure_keys or (shared and is_worth_comparing(first.sketch, second.sketch))
    return bool(is_compared) and is_same_story(one, other)


def test_same_story_is_found_in_the_labelled_set() -> None:
    labelled = list(pairs())
    right = [is_same for one, other, is_same in labelled if is_found(one, other)]
    wrong = [
        (" ".join(one.title), " ".join(other.title), is_same)
        for one, other, is_same in labelled
        if is_found(one, other) != is_same
    ]
    positives = sum(is_same for _, _, is_same in labelled)
    precision, recall = sum(right) / len(right), sum(right) / positives
    print(f"{len(labelled)} pairs, {positives} the same: precision {precision:.3f}, recall {recall:.3f}")
    assert len(labelled) >= 300
    assert precision >= 0.98, wrong
    assert recall >= 0.9, wrong


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("https://www.news.example/2026/a-story/?utm_source=rss&id=7#top", "news.example/2026/a-story?id=7"),
        ("http://m.news.example/2026/a-story?id=7&fbclid=x", "news.example/2026/a-story?id=7"),
        ("https://news.example/2026/a-story/amp", "news.example/2026/a-story?"),
        ("https://news.example/", None),
        ("https://news.example/news/", None),
        ("https://news.example/?p=12", "news.example?p=12"),
        ("mailto:ann@example.org", None),
        ("https://[broken", None),
        (None, None),
    ],
)
def test_canonical_address_is_what_copies_share(url: str | None, canonical: str | None) -> None:
    assert canonical_address(url) == canonical


def test_address_alone_does_not_join_two_days_of_one_page() -> None:
    url = "https://weather.example/leeford"
    monday = telling_of("Weather on 2 March: 14 degrees", "", url)
    tuesday = telling_of("Weather on 3 March: 16 degrees", "", url)
    assert not is_same_story(monday, tuesday)
    assert is_same_story(monday, telling_of("Weather on 2 March", "", url))


@pytest.mark.parametrize(
    "text", ["", "<" * 50_000, "桥" * 50_000, " " * 50_000, "a-" * 25_000, "\ud800" * 100]
)
def test_telling_of_hostile_text_is_bounded(text: str) -> None:
    telling = telling_of(text, text, text)
    assert len(telling.text) <= 140
    assert len(marks_of(telling).keys) <= 12
    assert is_same_story(telling, telling) in (True, False)

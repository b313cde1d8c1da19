"""A watched page is new when it says something else, and stays what it is when only what always changes has changed."""

import time

import pytest

from headwater.formats.pages.watch import first_number, read_watched, significant
from tests.formats.pages.watch_pairs import PAIRS, Pair

URL = "https://example.org/"


def judge(each: Pair) -> bool:
    before, after = (
        read_watched(text.encode(), each.selector, url=URL) for text in (each.before, each.after)
    )
    assert before is not None
    assert after is not None
    return before.lines != after.lines


def test_watch_judges_pairs_as_a_person_does() -> None:
    wrong = [each.name for each in PAIRS if judge(each) is not each.changed]
    assert len(PAIRS) >= 40
    assert len(wrong) <= 0.05 * len(PAIRS), wrong


@pytest.mark.parametrize("each", PAIRS, ids=lambda each: each.name)
def test_watch_same_page_is_the_same(each: Pair) -> None:
    assert not judge(Pair(each.name, each.before, each.before, False, each.selector))


def test_watch_ignores_what_it_is_told_to() -> None:
    one, two = (f"<p>Text</p><p class=luck>{n}</p>".encode() for n in (1, 2))
    assert read_watched(one, None, [".luck"], url=URL) == read_watched(two, None, [".luck"], url=URL)


@pytest.mark.parametrize("line", ["Now 12.50 EUR", "Now 1,299.50", "Changed to 9.99 today"])
def test_price_is_not_taken_for_a_time(line: str) -> None:
    assert significant(line) == line


@pytest.mark.parametrize("line", ["Updated 14.30 Uhr", "Last updated: 14:30", "Refreshed 2.15 pm"])
def test_time_of_a_stamp_is_left_out(line: str) -> None:
    assert significant(line) == ""


def test_watch_missing_part_is_none() -> None:
    assert read_watched(b"<p>Text</p>", ".price", url=URL) is None


@pytest.mark.parametrize(
    "text",
    [
        "1" * 200_000,
        "a-" * 100_000,
        "1 view " * 30_000,
        "updated " * 30_000,
        "ends " * 50_000,
        "阅读" * 100_000,
        "0f" * 100_000,
    ],
)
def test_significant_takes_time_by_length(text: str) -> None:
    began = time.process_time()
    significant(text)
    read_watched(f"<p>{text}</p>".encode(), url=URL)
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("€ 1,299.00", 1299.0),
        ("1.299,00 €", 1299.0),
        ("1 299 kr", 1299.0),
        ("CHF 1'299.50", 1299.5),
        ("1,299", 1299.0),
        ("12,5 %", 12.5),
        ("-3.5°", -3.5),
        ("1.234.567", 1234567.0),
        ("no number", None),
        ("¥20", 20.0),
    ],
)
def test_first_number_reads_thousands_and_decimals(text: str, number: float | None) -> None:
    assert first_number(text) == number

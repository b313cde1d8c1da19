"""The ledger: the quick way of reading a sitemap and the whole one come to the same, whatever changed."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.formats.sitemaps.ledger import (
    DAY_SECONDS,
    Document,
    Ledger,
    Reading,
    judge,
    key_of,
    read_document,
)
from headwater.formats.sitemaps.read import read_sitemap
from headwater.model import Validators
from tests.examples import examples

Dates = dict[int, int]  # page: day


def write(dates: Dates, head: str = "") -> bytes:
    records = "".join(
        f"\n<url><loc>https://e.org/{page}</loc>{f'<lastmod>2024-01-{day:02}</lastmod>' if day else ''}</url>"
        for page, day in dates.items()
    )
    return f"<?xml version='1.0'?>{head}<urlset>{records}\n</urlset>".encode()


def enter(ledger: Ledger, reading: Reading, now: float = 0.0) -> None:
    reading.enter(ledger.documents["d"], ledger, now)


def begin(dates: Dates) -> Ledger:
    ledger = Ledger(documents={"d": Document()})
    enter(ledger, read_document(write(dates), ledger.documents["d"], url="https://e.org/"))
    return ledger


def changes(ledger: Ledger, data: bytes) -> tuple[dict[str, str], Reading]:
    reading = read_document(data, ledger.documents["d"], url="https://e.org/")
    verdicts = reading.verdicts(ledger)
    told: dict[str, str] = {
        url.loc: verdict
        for url, verdict in zip(reading.urls, verdicts, strict=True)
        if verdict != "unchanged"
    }
    return told, reading


pages = st.dictionaries(st.integers(0, 40), st.integers(0, 28), min_size=1, max_size=40)


@settings(max_examples=examples(200), deadline=None)
@given(before=pages, after=pages, seed=st.integers(0, 9))
def test_what_changed_is_told_whatever_the_order(before: Dates, after: Dates, seed: int) -> None:
    ledger = begin(before)
    shuffled = list(after.items())
    Random(seed).shuffle(shuffled)
    believed_before = {} if len(before) >= 10 and len(set(before.values())) == 1 else before
    told, reading = changes(ledger, write(dict(shuffled)))
    generated = len(after) >= 10 and len(set(after.values())) == 1 and len(reading.urls) == len(after)
    expected = {}
    for page, day in after.items():
        if page not in before:
            expected[f"https://e.org/{page}"] = "new"
        elif not generated and 0 < believed_before.get(page, 0) < day:
            expected[f"https://e.org/{page}"] = "modified"
    assert told == expected
    enter(ledger, reading, 5.0)
    assert set(ledger.gone) == {key_of(f"https://e.org/{p}") for p in before.keys() - after.keys()}
    assert ledger.count() == len(after)
    assert changes(ledger, write(dict(shuffled)))[0] == {}


@settings(max_examples=examples(50), deadline=None)
@given(before=pages, after=pages)
def test_a_ledger_is_the_same_after_it_was_stored(before: Dates, after: Dates) -> None:
    ledger = begin(before)
    ledger.documents["d"].validators = Validators(b'"\xff"', None, b"\x00")
    ledger.gone[7] = (3, 4.5)
    ledger.watched["https://e.org/é"] = (None, 1.0)
    ledger.robots["https://e.org"] = (2.0, "User-agent: *")
    again = Ledger.from_bytes(ledger.to_bytes())
    assert again.to_bytes() == ledger.to_bytes()
    assert again.documents["d"].validators == ledger.documents["d"].validators
    assert (again.gone, again.watched, again.robots) == (ledger.gone, ledger.watched, ledger.robots)
    assert changes(again, write(after))[0] == changes(ledger, write(after))[0]


def test_only_changed_records_are_parsed() -> None:
    dates = {page: page % 28 + 1 for page in range(1_000)}
    ledger = begin(dates)
    _, reading = changes(ledger, write({2_000: 3, **dates, 7: 28}, head="<!-- made at noon -->"))
    assert sorted(url.loc for url in reading.urls) == [
        "https://e.org/0",  # it was first, without a line before it
        "https://e.org/2000",
        "https://e.org/7",
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"<urlset><url><loc>https://e.org/1</loc><!-- <url>x</url> --></url></urlset>",
        b"<urlset><url><loc><![CDATA[https://e.org/1]]></loc></url></urlset>",
        b"<!DOCTYPE x [<!ENTITY a 'https://e.org/1'>]><urlset><url><loc>https://e.org/1</loc></url></urlset>",
        b"<urlset><url><loc>https://e.org/1</loc></url><url><lastmod>2024</lastmod></url></urlset>",
        "<?xml version='1.0' encoding='utf-16'?><urlset><url><loc>https://e.org/1</loc></url></urlset>".encode(
            "utf-16"
        ),
        b"https://e.org/1\n",
    ],
)
def test_what_cannot_be_split_is_read_whole(data: bytes) -> None:
    ledger = begin({2: 1})
    for _ in range(2):
        told, reading = changes(ledger, data)
        enter(ledger, reading)
        assert ledger.count() == len(read_sitemap(data).urls) == 1
    assert told == {}


@pytest.mark.parametrize("cut", [0, 3, 4, 11, -1])
def test_damage_is_noticed(cut: int) -> None:
    data = bytearray(begin({1: 1, 2: 2}).to_bytes())
    data[cut] ^= 0xFF
    with pytest.raises(ValueError):
        Ledger.from_bytes(bytes(data))


def test_the_same_address_under_https_is_the_same() -> None:
    assert key_of("http://e.org/1") == key_of("https://e.org/1")
    assert key_of("https://e.org/1") != key_of("https://e.org/2")


@pytest.mark.parametrize(
    ("known", "before", "now", "verdict"),
    [
        (False, None, 1.0, "new"),
        (True, 1.0, 2.0, "modified"),
        (True, 2.0, 1.0, "unchanged"),
        (True, 1.0, 1.0, "unchanged"),
        (True, None, 1.0, "unchanged"),
        (True, 1.0, None, "unchanged"),
    ],
)
def test_judging(known: bool, before: float | None, now: float | None, verdict: str) -> None:
    assert judge(known, before, now) == verdict


def test_clean_up_spares_what_is_listed_and_what_left_lately() -> None:
    ledger = begin({1: 1})
    for number in range(1_500):
        ledger.gone[number] = (0, 100 * DAY_SECONDS - number)
    ledger.gone[9_999] = (0, 60 * DAY_SECONDS)
    now = 100 * DAY_SECONDS
    assert ledger.forget_gone(now) == {9_999}, "a thousand and more that left today are spared"
    assert len(ledger.forget_gone(now + 8 * DAY_SECONDS)) == 500
    assert 1_499 not in ledger.gone and 0 in ledger.gone
    assert ledger.known(np.array([key_of("https://e.org/1")], np.uint64))[0].all()


def test_what_a_damaged_document_leaves_out_is_not_gone() -> None:
    ledger = begin({page: page % 28 + 1 for page in range(20)})
    broken = write({1: 2, 30: 3}).replace(b"</urlset>", b"<x></urlset>")
    told, reading = changes(ledger, broken)
    assert (told, reading.truncated, reading.cut_off) == ({"https://e.org/30": "new"}, True, False)
    enter(ledger, reading)
    assert (ledger.gone, ledger.count()) == ({}, 21)

"""What people paste, case by case (`pasted.txt`), and how rules are read, filled and refused."""

import time
from pathlib import Path

import pytest

from headwater.errors import InputError
from headwater.formats.pages.patterns import may_take_long
from headwater.formats.pages.rules import AddressRules, Match, choices_of, known_feeds, own_rules

TABLE = Path(__file__).with_name("pasted.txt").read_text(encoding="utf-8")
CASES = [line.split(" → ") for line in TABLE.splitlines() if not line.startswith("#")]
CHANNEL = "a" * 22
FEEDS = "https://www.youtube.com/feeds/videos.xml"


def told(found: Match | None) -> str:
    """A match as the table writes it."""
    if found is None:
        return "nothing"
    start = f"guess {found.rule}" if found.is_guess else found.rule
    if found.offers:
        return f"{start} {found.offers[0].type} {found.offers[0].url}"
    if found.lookup:
        return f"{start} lookup {found.lookup.url}"
    return f"{start} page {found.page}"


@pytest.mark.parametrize(("pasted", "meaning"), CASES, ids=[case[0] for case in CASES])
def test_pasted_text_means_a_source(pasted: str, meaning: str) -> None:
    assert told(own_rules().find(f" {pasted}\n")) == meaning


def test_table_has_wrong_ones_and_each_rule_that_matters() -> None:
    assert len(CASES) >= 150
    assert sum(meaning == "nothing" for _, meaning in CASES) >= 25
    pasted = {meaning.removeprefix("guess ").split()[0] for _, meaning in CASES}
    assert [rule.name for rule in own_rules().rules if rule.name not in pasted] == []


def test_every_rule_has_a_title_in_both_languages_and_a_unique_name() -> None:
    rules = own_rules().rules
    assert len({rule.name for rule in rules}) == len(rules)
    assert all(rule.title and rule.title_zh for rule in rules)


def test_youtube_channel_is_offered_with_and_without_shorts_and_live() -> None:
    found = own_rules().find(f"https://www.youtube.com/channel/UC{CHANNEL}")
    assert found is not None
    assert [(offer.url.partition("?")[2], offer.title_in("en")) for offer in found.offers] == [
        (f"channel_id=UC{CHANNEL}", "All videos"),
        (f"playlist_id=UULF{CHANNEL}", "Without shorts and live streams"),
        (f"playlist_id=UUSH{CHANNEL}", "Shorts only"),
        (f"playlist_id=UULV{CHANNEL}", "Live streams only"),
    ]
    assert found.offers[2].title_in("zh") == "只看短视频"


def test_choice_that_was_pasted_stays_the_first() -> None:
    chosen = f"{FEEDS}?playlist_id=UULF{CHANNEL}"
    first, *others = choices_of(chosen, own_rules())
    assert (first.url, len(others)) == (chosen, 3)
    assert [offer.url for offer in choices_of("https://e.org/feed", own_rules())] == ["https://e.org/feed"]


def test_known_feeds_are_feeds_of_pages_without_guesses() -> None:
    assert known_feeds("https://www.reddit.com/r/python")[0] == "https://www.reddit.com/r/python/.rss"
    assert known_feeds("https://forum.example/c/python") == []
    assert known_feeds("r/python") == []


RULE = """
[[rule]]
name = "wiki"
title = "Our wiki"
hosts = ["wiki.{place}.example"]
paths = ["/{space}/..."]
where = { space = "[A-Z]+" }
[[rule.offers]]
url = "https://wiki.{place}.example/rss?space={space}"
[rule.offers.config]
headers = { Authorization = "Bearer ${WIKI}", Space = "{space}" }
list = ["{space}", 1]
"""


def test_rule_of_an_operator_fills_address_and_config_and_leaves_references() -> None:
    found = AddressRules.read(RULE).find("https://wiki.north.example/TEAM/page")
    assert found is not None
    (offer,) = found.offers
    assert offer.url == "https://wiki.north.example/rss?space=TEAM"
    assert offer.config == {
        "headers": {"Authorization": "Bearer ${WIKI}", "Space": "TEAM"},
        "list": ["TEAM", 1],
    }


def test_rule_that_stands_first_counts() -> None:
    own = RULE.replace("wiki.{place}.example", "github.com").replace("[A-Z]+", ".+")
    own = own.replace("{place}", "x").replace("/{space}/...", "/{space}")
    found = (AddressRules.read(own) + own_rules()).find("https://github.com/ann")
    assert found is not None
    assert found.rule == "wiki"


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ("[[rule", "TOML|Expected|expected"),
        (RULE.replace('title = "Our wiki"', ""), "title is missing"),
        (RULE.replace("where", "wher"), "wiki: there is no key wher"),
        (RULE.replace("[A-Z]+", "[A-Z"), "unterminated"),
        *(
            (RULE.replace("[A-Z]+", costly), "may take too long: repeat nothing that repeats")
            for costly in ("(A+)+", "(A|AB)*C", "((A+)B)*", "(?:A{1,9}){2,}", "A*A*A*", "(A+?)*?")
        ),
        (RULE.replace("space={space}", "space={spice}"), "no pattern has the blank {spice}"),
        (RULE.replace('["wiki.{place}.example"]', "7"), "int"),
    ],
)
def test_rules_that_cannot_be_read_say_what_is_wrong(changed: str, problem: str) -> None:
    with pytest.raises(InputError, match=f"the address rules cannot be read: .*({problem})"):
        AddressRules.read(changed)


def test_value_from_an_address_cannot_leave_its_place() -> None:
    found = own_rules().find("https://pypi.org/project/..%2F..%2Fevil/")
    assert found is None
    found = own_rules().find("https://stackoverflow.com/questions/tagged/c%23%3Fa%26b/")
    assert found is not None
    assert found.offers[0].url == "https://stackoverflow.com/feeds/tag/c%23%3Fa%26b"


@pytest.mark.parametrize(
    "text",
    [
        "@" * 1_999,
        "@" + "a." * 999,
        "https://e.org" + "/a" * 990,
        "https://" + "a." * 900 + "org/c/x",
        "https://youtube.com/" + "?list=" * 330,
        "gh:" + "a/" * 900,
        "https://e.org/?" + "a=b&" * 480,
        "!" + "a@" * 990,
        "x" * 100_000,
    ],
)
def test_long_text_takes_little_time(text: str) -> None:
    own_rules().find("https://e.org/")  # expressions are compiled when they are first needed
    own_rules().find(text)
    began = time.perf_counter()
    own_rules().find(text)
    assert time.perf_counter() - began < 0.25


@pytest.mark.parametrize(
    "expression", ["[A-Z]+", "(?!new)[a-z+*]{1,40}", "a+-b+", "(a+|b)c", "(ab?){3}", r"\(\*+"]
)
def test_usual_expressions_of_rules_are_taken(expression: str) -> None:
    assert not may_take_long(expression)

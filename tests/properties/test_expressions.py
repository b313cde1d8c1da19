"""Every regular expression of the package takes linear time, whatever it is given.

Python's engine holds its lock while it matches: one slow expression stops the whole process, threads or not. For each
expression texts are made from its own parts: what leads to a repetition, what is repeated, thousands of times, and
something that does not fit.
"""

import ast
import pkgutil
import re
import time
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import headwater

parser, opcodes = import_module("re._parser"), import_module("re._constants")
CHARACTERS = 40_000
MOST_SECONDS = 0.25  # the square of so many characters takes longer, a line of them some milliseconds
REPEATS = (opcodes.MAX_REPEAT, opcodes.MIN_REPEAT, opcodes.POSSESSIVE_REPEAT)
ASSERTIONS = (opcodes.ASSERT, opcodes.ASSERT_NOT)
COMMON = " <a1\"'=&;-\n.,/:"
END = "\x00"
CUTS = 8

# Expressions that are only ever matched at the beginning of a text.
MATCHED = {
    "sources.addresses._HAS_SCHEME",
    "collect.decide._USUAL_URL",
    "collectors.hackernews._LIST_ADDRESS",
    "collectors.mailbox._SENDER",
    "collectors.reddit._ADDRESS",
    "collectors.reddit._OWN_HOST",
    "config._PORT_AND_MORE",
    *(
        f"formats.dates._{name}"
        for name in ("RFC822", "ISO", "ISO_SHORT_YEAR", "ISO_TRUNCATED", "ISO_ORDINAL")
    ),
    *(f"formats.dates._{name}" for name in ("ISO_WEEK", "ISO_DIGITS", "EPOCH", "EAST_ASIAN", "KOREAN_ISO")),
    "collectors.telegram._COUNT",
    "formats.broken_json._BEHIND",
    "formats.calendars._LINE",
    "formats.charset._NARROW_START",
    "formats.feeds.unwrap._ESCAPED",
    "formats.guessing._NAME",
    "formats.html._SCHEME",
    "formats.mail.clean._COUNTING_NAMES",
    "formats.mail.clean._TINY",
    "formats.links._ABSOLUTE",
    "formats.pages.propose._CLASS",
    "formats.sitemaps.read._FIRST_TAG",
    "formats.xml.soup._INSIDE",
    "formats.xml.soup._INSIDE_WIDE",
    "formats.xml.soup._NAME",
    "formats.subtitles._TIMES",
    "newsletters.receiver._PATH",
    "services.mail_message._MAILBOX",
}
# Expressions whose texts are cut before they are looked at, with the length of these.
SHORT = {
    "collectors.answer._PAGE": 1_024,
    "formats.charset._DECLARATION": 2_048,
    "formats.tables._QUOTED": 255,
    **{f"formats.pages.patterns.{name}": 2_000 for name in ("_ESCAPED_OR_CLASS", "_INNER_GROUP", "_LAZY")},
    **{f"formats.pages.scrape._{name}": 1_000 for name in ("ATTRIBUTE", "COMBINATORS", "STRINGS", "HAS")},
}


@cache
def expressions() -> dict[str, re.Pattern[Any]]:
    """The compiled expressions of all modules, by where they stand."""
    found: dict[str, re.Pattern[Any]] = {}
    known: set[tuple[Any, int]] = set()
    for info in pkgutil.walk_packages(headwater.__path__, "headwater."):
        if "migrations" in info.name or info.name.endswith("__main__"):
            continue
        for name, value in vars(import_module(info.name)).items():
            parts = value.values() if isinstance(value, dict) else value
            several = list(parts) if isinstance(value, dict | list | tuple) else [value]
            for number, each in enumerate(several):
                if isinstance(each, re.Pattern) and (each.pattern, each.flags) not in known:
                    known.add((each.pattern, each.flags))
                    place = f"{info.name}.{name}".removeprefix("headwater.")
                    found[place if len(several) == 1 else f"{place}.{number}"] = each
    return found


@cache
def expressions_in_calls() -> dict[str, tuple[str, re.Pattern[Any]]]:
    """The expressions that are written where they are used, with the function that uses them."""
    found = {}
    root = Path(headwater.__file__).parent
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "re"
                and node.args
                and isinstance(node.args[0], ast.Constant)
                and node.func.attr != "compile"
            ):
                way = node.func.attr if node.func.attr in ("match", "fullmatch") else "search"
                found[f"{path.relative_to(root)}:{node.lineno}"] = (way, re.compile(str(node.args[0].value)))
    return found


def characters_of(items: Iterable[tuple[Any, Any]]) -> list[str]:
    """Some characters of a class."""
    items = list(items)
    if items[0][0] is opcodes.NEGATE:
        matcher = re.compile("[^" + re.escape("".join(_literals(items))) + "]")
        return [each for each in 'a 1-<"' + COMMON if matcher.match(each)][:6] or ["\u4e00"]
    return _literals(items)[:6] or ["a"]


def _literals(items: Iterable[tuple[Any, Any]]) -> list[str]:
    found = []
    for kind, value in items:
        if kind is opcodes.LITERAL:
            found.append(chr(value))
        elif kind is opcodes.RANGE:
            found.append(chr(value[0]))
        elif kind is opcodes.CATEGORY:
            known = {opcodes.CATEGORY_SPACE: " ", opcodes.CATEGORY_DIGIT: "1", opcodes.CATEGORY_WORD: "a"}
            found.append(known.get(value, "-"))
    return found


def sample(parts: Iterable[tuple[Any, Any]], choice: int = 0) -> str:
    """A text that parts of an expression match, about; `choice` tells one from another."""
    found = ""
    for kind, value in parts:
        if kind is opcodes.LITERAL:
            found += chr(value)
        elif kind is opcodes.NOT_LITERAL:
            found += "b" if value == ord("a") else "a"
        elif kind is opcodes.ANY:
            found += "a"
        elif kind is opcodes.IN:
            characters = characters_of(value)
            found += characters[choice % len(characters)]
        elif kind is opcodes.BRANCH:
            found += sample(value[1][choice % len(value[1])], choice)
        elif kind is opcodes.SUBPATTERN:
            found += sample(value[3], choice)
        elif kind is opcodes.ATOMIC_GROUP:
            found += sample(value, choice)
        elif kind in REPEATS:
            found += sample(value[2], choice) * (max(value[0], 1) if choice % 2 == 0 else value[0])
    return found


def repetitions(parts: list[tuple[Any, Any]], before: str = "") -> Iterator[tuple[str, str]]:
    """For each repetition of an expression: what leads there, and what it repeats."""
    for place, (kind, value) in enumerate(parts):
        lead = before + sample(parts[:place])
        if kind in REPEATS:
            inside = list(value[2])
            if value[1] >= 50:
                singles = dict.fromkeys(text for choice in range(6) if (text := sample(inside, choice)))
                following = [sample(parts[place + 1 : place + 2], choice) for choice in range(3)]
                yield from ((lead, text) for text in singles)
                yield from ((lead, text + more) for text in list(singles)[:3] for more in following if more)
            yield from repetitions(inside, lead)
            yield from repetitions(inside, lead + sample(inside))
        elif kind is opcodes.SUBPATTERN:
            yield from repetitions(list(value[3]), lead)
        elif kind is opcodes.ATOMIC_GROUP:
            yield from repetitions(list(value), lead)
        elif kind is opcodes.BRANCH:
            for branch in value[1]:
                yield from repetitions(list(branch), lead)
        elif kind in ASSERTIONS:
            yield from repetitions(list(value[1]), lead)


def texts_for(expression: re.Pattern[Any], length: int) -> Iterator[str]:
    tree = list(parser.parse(expression.pattern, expression.flags & ~re.DEBUG))
    found = dict.fromkeys(repetitions(tree))
    wholes = [sample(tree, choice) for choice in range(4)]
    beginnings = [whole[:cut] for whole in wholes for cut in (*range(1, CUTS), len(whole))]
    for lead, repeated in [
        *found,
        *(("", text) for text in (*beginnings, *(lead for lead, _ in found), *COMMON)),
    ]:
        if repeated and len(lead) < 200:
            yield (lead + repeated * (length // len(repeated)))[:length] + END


def slowest(expression: re.Pattern[Any], way: str, length: int) -> tuple[float, str]:
    """How long it takes for the worst of all texts. The short ones come first: some expressions never end."""
    worst = (0.0, "")
    texts = (text for each in (24, 400, length) for text in texts_for(expression, min(each, length)))
    for text in dict.fromkeys(texts):
        given = text.encode("latin-1", "replace") if isinstance(expression.pattern, bytes) else text
        began = time.thread_time()
        getattr(expression, way)(given)
        worst = max(worst, (time.thread_time() - began, f"{text[:60]!r}…{text[-10:]!r}"))
        if worst[0] > MOST_SECONDS:
            break
    return worst


@pytest.mark.parametrize("place", sorted(expressions()))
def test_expression_takes_linear_time(place: str) -> None:
    expression = expressions()[place]
    way = "match" if place in MATCHED else "search"
    seconds, text = slowest(expression, way, SHORT.get(place, CHARACTERS))
    assert seconds < MOST_SECONDS, text


@pytest.mark.parametrize("place", sorted(expressions_in_calls()))
def test_expression_in_a_call_takes_linear_time(place: str) -> None:
    way, expression = expressions_in_calls()[place]
    seconds, text = slowest(expression, way, CHARACTERS)
    assert seconds < MOST_SECONDS, text


def test_listed_expressions_exist() -> None:
    assert (MATCHED | set(SHORT)) - set(expressions()) == set()


@pytest.mark.parametrize(
    "slow", [r"(a+)+$", r"[^@]+@[^@]+\.x", r"<!--.*?-->", r"\s*;\s*$", r"x\s*\.?\s*y", r"(a|a)+$"]
)
def test_slow_expression_is_found(slow: str) -> None:
    seconds, _ = slowest(re.compile(slow), "search", CHARACTERS)
    assert seconds > MOST_SECONDS

"""Matching items with people's rules. Pure, apart from the trial, which reads a week of a person's entries.

A rule's filter is a config of the step `filter_content`, with tighter limits: every account may write one.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import orjson
from pydantic import ValidationError
from sqlalchemy import Connection

from headwater.errors import InputError, StepError
from headwater.model import Json, StoredItem
from headwater.pipeline.steps.base import StepContext
from headwater.pipeline.steps.filter_content import (
    FilterConfig,
    FilterSubject,
    check_filter,
    objections,
)
from headwater.store.people.entries import EntryFilter, list_places, read_entries
from headwater.store.people.marks import DAY
from headwater.store.people.rules import (
    LONGEST_TEXT,
    Match,
    Rule,
    Trial,
    refuse_foreign_sources,
)
from headwater.views.items import item_json

LONGEST_FILTER: Final = 10_000  # characters of its JSON
MOST_PATTERNS: Final = 20
MOST_REPEATS: Final = 100  # of counted repetitions in a regular expression, one inside the other
MOST_STEPS: Final = 20_000  # of a JMESPath expression
TRIAL_SECONDS: Final = 7 * DAY
TRIAL_ITEMS: Final = 1_000  # that a trial looks at
TRIAL_SHOWN: Final = 20
_COUNT = re.compile(r"\{(\d{0,9})(?:,(\d{0,9}))?\}")


def read_filter(given: Mapping[str, Any]) -> Json:
    """A rule's filter as it is stored: what was given, if it can be used."""
    try:
        config = FilterConfig.model_validate(dict(given))
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(
            "the filter is wrong at {key}: {problem}",
            key=".".join(map(str, first["loc"])) or "filter",
            problem=first["msg"],
        ) from None
    stored = config.model_dump(mode="json", exclude_defaults=True)
    try:
        length = len(orjson.dumps(stored))
    except TypeError:
        raise InputError("the filter holds characters that cannot be stored") from None
    if length > LONGEST_FILTER:
        raise InputError("the filter is too long; at most {most} characters", most=LONGEST_FILTER)
    if not stored.keys() - {"look_in"}:
        raise InputError("the filter is empty: it would match every item")
    _refuse_heavy_patterns([*config.include_patterns, *config.exclude_patterns])
    check_filter(config)
    return stored


def _refuse_heavy_patterns(patterns: Sequence[str]) -> None:
    """Regular expressions take time linear in the text, but counted repetitions can take much memory."""
    if len(patterns) > MOST_PATTERNS:
        raise InputError("a rule has at most {most} regular expressions", most=MOST_PATTERNS)
    for pattern in patterns:
        product = 1
        for least, most in _COUNT.findall(pattern):
            product *= max(int(least or 0), int(most or 0), 1)
        if product > MOST_REPEATS:
            raise InputError(
                "{pattern} repeats too often; at most {most} times", pattern=pattern[:100], most=MOST_REPEATS
            )


@lru_cache(maxsize=1_000)
def _config(stored: bytes) -> FilterConfig:
    return FilterConfig.model_validate_json(stored)


def subject_of(item: StoredItem) -> FilterSubject:
    return FilterSubject(StepContext(item_json(item), {}, {}, "", Path()), MOST_STEPS)


def matches(filter_: Mapping[str, Any], subject: FilterSubject) -> bool:
    """Whether an item is what a rule looks for. One on which the filter cannot be used is not."""
    try:
        found = objections(subject, _config(orjson.dumps(filter_)))
    except StepError:
        return False
    return all(objection is None for _, objection in found)


def find_matches(items: Sequence[StoredItem], rules: Mapping[int, Sequence[Rule]]) -> list[Match]:
    """Which rules match which items; `rules` by the items' sources."""
    found = []
    for item in items:
        subject = subject_of(item)
        found += [
            Match(rule, item.id, item.title, item.url, item.item_at)
            for rule in rules.get(item.source_id, ())
            if matches(rule.filter, subject)
        ]
    return found


def read_week(
    connection: Connection, user_id: int, source_ids: Sequence[int], now: float
) -> tuple[list[StoredItem], bool]:
    """A person's entries of the last week, as many as a trial looks at; and whether there were more."""
    refuse_foreign_sources(connection, user_id, source_ids)
    wanted = EntryFilter(source_ids=tuple(source_ids) or None, since=now - TRIAL_SECONDS)
    places = list_places(connection, user_id, wanted, limit=TRIAL_ITEMS)
    numbers = [place.id for place in places[:TRIAL_ITEMS]]
    entries = read_entries(connection, user_id, numbers, longest_text=LONGEST_TEXT)
    return [entry.item for entry in entries], len(places) > TRIAL_ITEMS


def try_filter(filter_: Mapping[str, Any], week: Sequence[StoredItem], *, is_cut: bool = False) -> Trial:
    """Try a filter on the items that `read_week` found."""
    found = [item for item in week if matches(filter_, subject_of(item))]
    return Trial(len(found), len(week), is_cut, tuple(found[:TRIAL_SHOWN]))

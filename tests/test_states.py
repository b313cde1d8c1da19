"""One state for a source: which, in which words, and what its owner can do."""

from dataclasses import replace

import pytest

from headwater import states
from headwater.errors import FailureKind
from headwater.language import translate
from headwater.model import Source
from headwater.states import (
    SOURCE_STATES,
    SourceState,
    find_state,
    needs_attention,
    next_visit_at,
    tell_advice,
    tell_failure,
    tell_state,
)
from tests.clock import NOON

VISITED = Source(1, "one", "rss.feed", "https://one.example/", last_fetched_at=NOON, next_fetch_at=NOON + 60)


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "on_time"),
        ({"is_late": True}, "late"),
        ({"last_fetched_at": None}, "pending"),
        ({"consecutive_failures": 1}, "failing"),
        ({"consecutive_failures": 7, "status": "paused"}, "failing"),
        ({"consecutive_failures": 1, "status": "needs_attention"}, "failing"),
        ({"consecutive_failures": 1, "status": "retired"}, "gone"),
        ({"schedule_enabled": False, "status": "retired"}, "paused"),
        ({"is_deleted": True, "schedule_enabled": False}, "removed"),
    ],
)
def test_state_of_source_is_the_first_that_applies(changes: dict[str, object], state: SourceState) -> None:
    assert find_state(replace(VISITED, **changes)) == state  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes", [{"schedule_enabled": False}, {"status": "retired"}, {"is_deleted": True}]
)
def test_next_visit_of_source_that_is_not_visited_is_none(changes: dict[str, object]) -> None:
    assert next_visit_at(VISITED) == NOON + 60
    assert next_visit_at(replace(VISITED, **changes)) is None  # type: ignore[arg-type]


def test_needs_attention_only_while_credentials_are_refused() -> None:
    refused = replace(VISITED, consecutive_failures=9, last_error_kind=FailureKind.UNAUTHORIZED)
    assert needs_attention(refused)
    assert not needs_attention(replace(refused, schedule_enabled=False))
    assert not needs_attention(replace(refused, last_error_kind=FailureKind.TIMEOUT))


def test_failing_source_tells_error_since_when_and_what_to_do() -> None:
    failing = replace(
        VISITED,
        consecutive_failures=1,
        last_error="it wants a password",
        last_error_kind=FailureKind.UNAUTHORIZED,
        failing_since_at=NOON,
    )
    told = tell_failure(failing)
    assert told is not None
    assert told.startswith("failing since 2023-") and told.endswith(": it wants a password")
    assert tell_advice(failing) == "set its credentials again; it is then visited at once"
    assert tell_failure(VISITED) is None and tell_advice(VISITED) is None


@pytest.mark.release
def test_every_state_and_advice_has_chinese_words() -> None:
    texts = [*states._WORDS.values(), *states._OF_KINDS.values()]
    for changes in (
        {"is_late": True},
        {"consecutive_failures": 1},
        {"status": "retired"},
        {"schedule_enabled": False},
        {"is_deleted": True},
    ):
        advice = tell_advice(replace(VISITED, **changes))
        assert advice is not None
        texts.append(advice)
    assert [text for text in texts if translate(text, "zh") == text] == []
    assert [tell_state(state, "zh") for state in SOURCE_STATES] == [
        *("准时", "偏晚", "出错", "尚未访问", "已暂停", "已消失", "已删除")
    ]

"""Times in plain words."""

import pytest

from headwater.wording import NOTHING, ago, duration, size, tell_run, tell_step
from tests.clock import NOON


def test_ago() -> None:
    assert ago(NOON - 90, NOON, "en") == "90 s ago"
    assert ago(NOON - 600, NOON, "en") == "10 min ago"
    assert ago(NOON, NOON, "en") == "0 s ago"
    assert ago(NOON + 7200, NOON, "zh") == "2 小时后"
    assert ago(None, NOON, "en") == NOTHING


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        *((0, "0 s"), (119, "119 s"), (120, "2 min"), (7_199, "120 min"), (7_200, "2 h"), (172_800, "2 d")),
        *(
            (60 * 86_400, "60 d"),
            (61 * 86_400, "2 months"),
            (731 * 86_400, "2 years"),
            (2_917 * 86_400, "8 years"),
        ),
    ],
)
def test_duration(seconds: float, words: str) -> None:
    assert duration(seconds, "en") == words


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1 kB"),
        (97_575, "97.6 kB"),
        (340_000, "340 kB"),
        (1_250_000, "1.25 MB"),
    ],
)
def test_size(count: int, words: str) -> None:
    assert size(count) == words


def test_each_state_of_runs_and_steps_means_one_thing() -> None:
    assert tell_run("skipped", None, "en") == "filtered out"
    assert tell_run("skipped", "cancelled", "en") == "cancelled"
    assert tell_run("failed", "x", "en") == "failed"
    assert tell_step("skipped", None, "en") == "not run"
    assert tell_step("skipped", "it failed four times", "en") == "failed (optional)"
    assert tell_step("skipped", "cancelled", "en") == "cancelled"
    assert tell_step("completed", None, "zh") == "已完成"

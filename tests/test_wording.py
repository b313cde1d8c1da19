"""Times in plain words."""

import pytest

from headwater.wording import NOTHING, ago, duration
from tests.clock import NOON


def test_ago() -> None:
    assert ago(NOON - 90, NOON, "en") == "90 s ago"
    assert ago(NOON - 600, NOON, "en") == "10 min ago"
    assert ago(NOON, NOON, "en") == "0 s ago"
    assert ago(NOON + 7200, NOON, "zh") == "2 小时后"
    assert ago(None, NOON, "en") == NOTHING


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7_199, "120 min"), (7_200, "2 h"), (172_800, "2 d")],
)
def test_duration(seconds: float, words: str) -> None:
    assert duration(seconds, "en") == words

"""Back-off, pause, probes, and telling our own outage from theirs."""

import pytest

from headwater.errors import FailureKind
from headwater.schedule.backoff import (
    Failure,
    Thresholds,
    classify_failure,
    find_backoff,
    find_probe,
    find_status,
    is_our_outage,
)

HOUR = 3600.0


@pytest.mark.parametrize(
    ("failure", "seconds"),
    [
        (Failure(1, FailureKind.RATE_LIMITED), 6 * HOUR),
        (Failure(1, FailureKind.RATE_LIMITED, retry_after_seconds=90), 90),
        (Failure(1, FailureKind.SERVER_ERROR, retry_after_seconds=10**9), 7 * 24 * HOUR),
        (Failure(4, FailureKind.UNAUTHORIZED), 0),
        (Failure(1, FailureKind.FORBIDDEN), 12 * HOUR),
        (Failure(1, FailureKind.TIMEOUT), 900),
        (Failure(3, FailureKind.DNS), 3600),
        (Failure(99999, FailureKind.DNS), 24 * HOUR),
        (Failure(1, http_status=429), 6 * HOUR),
        (Failure(1, http_status=403), 12 * HOUR),
        (Failure(1, http_status=401), 0),
        (Failure(2, http_status=500), 1800),
        (Failure(1, message="HTTP 429"), 6 * HOUR),
    ],
)
def test_the_table(failure: Failure, seconds: float) -> None:
    assert find_backoff(failure) == seconds


def test_words_count_only_where_there_is_nothing_better() -> None:
    assert classify_failure(Failure(1, FailureKind.TIMEOUT, message="rate 429")) == "other"
    assert classify_failure(Failure(1, http_status=500, message="403 forbidden")) == "other"
    assert classify_failure(Failure(1, message="403 forbidden")) == "forbidden"


def test_presets() -> None:
    waits = [find_backoff(Failure(count, FailureKind.TIMEOUT), "pipeline", 60.0) for count in (1, 2, 3, 9)]
    assert waits == [120, 240, 480, 7200]
    waits = [find_backoff(Failure(count, FailureKind.TIMEOUT), "refresh") for count in (1, 2, 3, 9)]
    assert waits == [900, 1800, 3600, 3600]


def test_five_pause_ten_are_an_error() -> None:
    assert [find_status(count) for count in (0, 4, 5, 9, 10)] == ["ok", "ok", "paused", "paused", "error"]
    assert [find_probe(count) for count in (4, 5, 10)] == [None, 24 * HOUR, 7 * 24 * HOUR]
    assert find_status(2, Thresholds(2, 3)) == "paused"


def test_when_most_hosts_fail_the_fault_is_ours() -> None:
    hosts = [f"host{number}" for number in range(10)]
    assert is_our_outage(hosts[:6], hosts)
    assert not is_our_outage(hosts[:5], hosts)
    assert not is_our_outage(hosts[:3], hosts[:3])  # too few to tell
    assert not is_our_outage(["one"] * 50, ["one"] * 50)  # one host is one host

"""The twelve properties of the cadence document, each under the line it prescribes."""

import math
import sqlite3
import time
from collections.abc import Iterator
from random import Random
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.smart_scheduler import (
    FREQUENCY_CADENCE_MAP,
    RSS_CADENCE_INTERVALS,
    calculate_backoff,
    calculate_next_check_time,
    calculate_publish_time_stats,
    classify_update_frequency,
    get_source_stats,
    update_source_stats,
)
from tests.databases import postgres_database
from tests.test_smart_scheduler import REQUIRED_COLUMNS, create_tables

LOTS = settings(max_examples=150, deadline=None)
NOW = 1_750_000_000

timestamps = st.integers(1_000_000_000, 2_000_000_000)
entry_lists = st.lists(timestamps, min_size=3, max_size=30).map(
    lambda times: [{"published_at": at} for at in sorted(times, reverse=True)]
)
gaps = st.lists(st.floats(60, 60 * 86400), min_size=2, max_size=29)
messages = st.sampled_from(
    ["", "timeout", "HTTP 429", "rate limited", "401", "token expired", "403 forbidden"]
)


WORDS = ["", "429", "Rate", "频繁", "401", "EXPIRED", "过期", "403", "Forbidden"]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def conn(request: pytest.FixtureRequest, worker_name: str) -> Iterator[Any]:
    """A connection to a database with the document's tables; each property holds on both kinds."""
    if request.param == "sqlite":
        connection = sqlite3.connect(":memory:")
        create_tables(connection)
        yield connection
        connection.close()
        return
    server: str = request.getfixturevalue("postgres_url")
    with postgres_database(server, f"{worker_name}_properties") as url, psycopg.connect(url) as opened:
        create_tables(opened)
        yield opened


def begin(conn: Any, times: list[int] | None = None) -> None:
    mark = "?" if isinstance(conn, sqlite3.Connection) else "%s"
    conn.execute("DELETE FROM source_stats")
    conn.execute("DELETE FROM items")
    for at in times or []:
        conn.execute(
            f"INSERT INTO items (source_id, published_at, first_seen_at) VALUES (1, {mark}, {mark})", (at, at)
        )
    conn.commit()


# Feature: rss-smart-scheduler, Property 1: 频率分类一致性
@LOTS
@given(gaps)
def test_frequency_agrees_with_the_mean_gap(gaps: list[float]) -> None:
    times = [1_500_000_000.0]
    for gap in gaps:
        times.append(times[-1] + gap)
    mean = (times[-1] - times[0]) / (len(times) - 1) / 3600
    frequency, cadence = classify_update_frequency([{"published_at": at} for at in reversed(times)])
    limits = [
        (6, "realtime"),
        (18, "high"),
        (36, "daily"),
        (72, "daily_fixed"),
        (168, "weekly"),
        (720, "monthly"),
    ]
    expected = next((name for limit, name in limits if mean < limit), "low")
    if 24 / mean >= 5:
        expected = "realtime"
    assert (frequency, cadence) == (expected, FREQUENCY_CADENCE_MAP[expected])


# Feature: rss-smart-scheduler, Property 2: 发布时间统计正确性
@LOTS
@given(entry_lists)
def test_publish_hour_is_the_arithmetic_mean(entries: list[dict[str, Any]]) -> None:
    mean, deviation = calculate_publish_time_stats(entries)
    hours = [entry["published_at"] % 86400 / 3600 for entry in entries]
    assert mean is not None and deviation is not None
    assert math.isclose(mean, sum(hours) / len(hours), abs_tol=1e-6)
    assert 1.0 <= deviation <= 6.0


# Feature: rss-smart-scheduler, Property 3: 统计计数器递增正确性
@LOTS
@given(st.lists(st.booleans(), min_size=1, max_size=12))
def test_counters_count(conn: Any, news: list[bool]) -> None:
    begin(conn)
    for number, has_new in enumerate(news, 1):
        before = get_source_stats(conn, "1")
        hits = before["hit_count"] if before else 0
        row = update_source_stats(conn, "1", has_new_entries=has_new, now=NOW + number)
        assert row["check_count"] == number
        assert row["hit_count"] == hits + has_new


# Feature: rss-smart-scheduler, Property 4: 命中率计算正确性
@LOTS
@given(st.lists(st.booleans(), min_size=1, max_size=12))
def test_hit_rate_is_hits_over_checks(conn: Any, news: list[bool]) -> None:
    begin(conn)
    for has_new in news:
        update_source_stats(conn, "1", has_new_entries=has_new, now=NOW)
    row = get_source_stats(conn, "1")
    assert row is not None
    assert row["hit_rate"] == row["hit_count"] / row["check_count"] == sum(news) / len(news)
    assert 0.0 <= row["hit_rate"] <= 1.0


any_hour = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True), st.floats(0, 24))


# Feature: rss-smart-scheduler, Property 5: 下次检查时间边界约束
@LOTS
@given(
    st.sampled_from([*RSS_CADENCE_INTERVALS, "P9"]),
    st.sampled_from([*FREQUENCY_CADENCE_MAP, "unheard-of"]),
    any_hour,
    any_hour,
    st.integers(0, 2_000_000_000),
    st.floats(1_000_000_000, 2_000_000_000),
    st.integers(0, 10**6),
)
def test_next_check_stays_within_bounds(
    cadence: str,
    frequency: str,
    mean: float | None,
    deviation: float | None,
    last: int,
    now: float,
    seed: int,
) -> None:
    due = calculate_next_check_time(cadence, frequency, mean, deviation, last, now=now, rng=Random(seed))
    interval = RSS_CADENCE_INTERVALS.get(cadence, 3600)
    assert isinstance(due, int)
    assert now < due <= now + 24 * 3600
    assert due <= now + 2 * interval


# Feature: rss-smart-scheduler, Property 6: 抖动范围约束
@LOTS
@given(st.sampled_from(list(RSS_CADENCE_INTERVALS)), st.floats(1e9, 2e9), st.integers(0, 10**6))
def test_jitter_stays_within_fifteen_percent(cadence: str, now: float, seed: int) -> None:
    interval = RSS_CADENCE_INTERVALS[cadence]
    wait = calculate_next_check_time(cadence, now=now, rng=Random(seed)) - now
    assert 0.85 * interval <= wait <= 1.15 * interval


# Feature: rss-smart-scheduler, Property 7: 退避时间计算正确性
@LOTS
@given(st.integers(1, 10_000), st.text(max_size=20), st.sampled_from(WORDS))
def test_backoff_follows_the_table(count: int, text: str, word: str) -> None:
    message = f"{text} {word}"
    words = message.lower()
    if any(each in words for each in ("429", "rate", "频繁")):
        expected = 6 * 3600
    elif any(each in words for each in ("401", "expired", "过期")):
        expected = 0
    elif any(each in words for each in ("403", "forbidden")):
        expected = 12 * 3600
    else:
        expected = min(15 * 60 * 2 ** (count - 1), 24 * 3600)
    assert calculate_backoff(count, message) == expected


# Feature: rss-smart-scheduler, Property 8: 成功抓取重置状态
@LOTS
@given(st.lists(messages.filter(bool), min_size=1, max_size=8), st.booleans())
def test_success_resets(conn: Any, errors: list[str], has_new: bool) -> None:
    begin(conn)
    for message in errors:
        update_source_stats(conn, "1", error_message=message, now=NOW)
    row = update_source_stats(conn, "1", has_new_entries=has_new, error_message="", now=NOW)
    assert (row["fail_count"], row["backoff_until"]) == (0, 0)


# Feature: rss-smart-scheduler, Property 9: 节奏兼容性
@LOTS
@given(
    st.lists(timestamps, max_size=30), st.lists(st.tuples(st.booleans(), messages), min_size=1, max_size=12)
)
def test_cadence_is_always_one_of_seven(conn: Any, times: list[int], visits: list[tuple[bool, str]]) -> None:
    assert classify_update_frequency([{"published_at": at} for at in times])[1] in RSS_CADENCE_INTERVALS
    begin(conn, times)
    for has_new, message in visits:
        row = update_source_stats(conn, "1", has_new_entries=has_new, error_message=message, now=NOW)
        assert row["cadence"] in {"P0", "P1", "P2", "P3", "P4", "P5", "P6"}


# Feature: rss-smart-scheduler, Property 10: 重分析触发条件
@LOTS
@given(st.lists(st.booleans(), min_size=1, max_size=31))
def test_analysis_is_repeated_when_it_should(conn: Any, news: list[bool]) -> None:
    begin(conn, [NOW - hour * 3600 for hour in range(5)])  # realtime, at the next look
    for number, has_new in enumerate(news, 1):
        conn.execute("UPDATE source_stats SET frequency_type = 'low', cadence = 'P6'")
        row = update_source_stats(conn, "1", has_new_entries=has_new, now=NOW)
        analysed = number % 10 == 0 or (has_new and number <= 3)
        untouched = "daily" if number == 1 else "low"
        assert row["frequency_type"] == ("realtime" if analysed else untouched)


# Feature: rss-smart-scheduler, Property 11: 统计记录创建
@LOTS
@given(st.integers(1, 10**9), st.sampled_from(["rss", "custom"]), st.booleans(), messages)
def test_first_update_creates_the_row(conn: Any, source: int, kind: str, has_new: bool, message: str) -> None:
    begin(conn)
    assert get_source_stats(conn, str(source)) is None
    update_source_stats(conn, str(source), kind, has_new, message, now=NOW)
    row = get_source_stats(conn, str(source))
    assert row is not None
    assert row.keys() >= REQUIRED_COLUMNS
    assert (row["source_id"], row["source_type"], row["check_count"]) == (str(source), kind, 1)


# Feature: rss-smart-scheduler, Property 12: 时间戳更新
@LOTS
@given(st.integers(1_000_000_000, 2_000_000_000), st.booleans(), messages)
def test_updated_at_is_now(conn: Any, now: int, has_new: bool, message: str) -> None:
    begin(conn)
    update_source_stats(conn, "1", has_new_entries=has_new, error_message=message, now=now)
    row = get_source_stats(conn, "1")
    assert row is not None and row["updated_at"] == now
    update_source_stats(conn, "1")
    row = get_source_stats(conn, "1")
    assert row is not None and abs(row["updated_at"] - time.time()) <= 2

"""The commands simulate, tune and explain."""

import json
import time
from pathlib import Path

import numpy as np
import pytest

from headwater.model import Item
from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from headwater.store.reading.items import ItemChange, write_items
from tests.command import Headwater
from tests.histories import DAY, MONDAY
from tests.origin import Origin
from tests.simulate.test_engine import make_trace


@pytest.fixture
def headwater(tmp_path: Path) -> Headwater:
    return Headwater(tmp_path, f"sqlite:///{tmp_path / 'headwater.db'}")


@pytest.fixture
def trace_file(tmp_path: Path) -> str:
    trace = make_trace(30)
    times = np.concatenate([source.times for source in trace])
    offsets = np.cumsum([0, *[len(source.times) for source in trace]])
    start, end = MONDAY + 20 * DAY, MONDAY + 30 * DAY
    np.savez(
        tmp_path / "trace.npz", times=times, offsets=offsets, t0=[start] * len(trace), t1=[end] * len(trace)
    )
    return "trace.npz"


def test_simulate_prints_a_table_json_and_a_picture(
    headwater: Headwater, trace_file: str, tmp_path: Path
) -> None:
    common = ["simulate", "--traces", trace_file, "--policies", "fixed,adaptive", "--budget", "12,4"]
    shown = headwater.ok(*common, "--plot", "plot.svg")
    assert "adaptive" in shown
    assert "p95" in shown
    assert (tmp_path / "plot.svg").read_text(encoding="utf-8").startswith("<svg")
    assert [(row["policy"], row["budget"]) for row in headwater.json(*common)] == [
        ("fixed", 12),
        ("fixed", 4),
        ("adaptive", 12),
        ("adaptive", 4),
    ]
    assert not (tmp_path / "headwater.db").exists(), "a trace file needs no database"


def test_simulate_takes_own_history_and_own_budgets(headwater: Headwater) -> None:
    assert "there is no history to replay yet" in headwater.refused("simulate")
    with Store.open(headwater.environment["HEADWATER_DATABASE_URL"]) as store, store.writing() as connection:
        for source in make_trace(30):
            added = add_source(
                connection,
                name=source.name,
                type="rss.feed",
                url=f"https://{source.name}.example/",
                now=MONDAY,
            )
            changes = []
            for number, at in enumerate(source.times):
                key = number.to_bytes(16, "big")
                item = Item(str(number), published_at=float(at))
                changes.append(ItemChange("new", item, key, key, (), b"h", float(at)))
            write_items(connection, [(added.id, tuple(changes), MONDAY)])
    (row,) = headwater.json("simulate", "--policies", "cadence", "--budget", "own")
    assert (row["policy"], row["budget"]) == ("cadence", None)
    assert row["visits_per_day"] > 1


def test_tune_proposes_a_budget(headwater: Headwater, trace_file: str) -> None:
    shown = headwater.ok("tune", "--traces", trace_file, "--delay", "30")
    assert "set HEADWATER_BUDGET_VISITS_PER_DAY=" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["simulate", "--traces", "trace.npz", "--budget", "lots"], "is not a budget"),
        (["simulate", "--traces", "nowhere.npz"], "is not a trace file"),
        (["simulate", "--traces", "trace.npz", "--policies", "magic"], "there is no policy magic"),
        (["simulate", "--traces", "trace.npz", "--policies", "fixed", "--plot", "no/x.svg"], "cannot write"),
        (["tune"], "give either"),
        (["explain", "7"], "there is no source 7"),
        (["explain", "unknown"], "there is no source unknown"),
    ],
)
def test_mistakes_are_named(
    headwater: Headwater, trace_file: str, arguments: list[str], message: str
) -> None:
    assert message in headwater.refused(*arguments)


def test_explain_by_number_name_and_address(headwater: Headwater, origin: Origin) -> None:
    feed = b'<rss version="2.0"><channel><title>One</title><item><guid>1</guid></item></channel></rss>'
    url = origin.route("/feed", body=feed)
    headwater.ok("source", "add", url, HEADWATER_POLICY="interval")
    for name in ("1", "One", url):
        assert headwater.ok("explain", name).startswith("One (on time): fixed interval of 4 h; next visit ")
    explained = headwater.json("explain", "1")
    assert explained["reason"]["policy"] == "interval"
    assert time.strptime(explained["next_fetch_at"][:19], "%Y-%m-%dT%H:%M:%S")
    assert json.loads(headwater.ok("source", "show", "1", "--json"))["plan_reason"] == explained["reason"]
    assert headwater.ok("explain", "1", HEADWATER_LANGUAGE="zh").startswith("One（准时）：固定间隔 4 小时；")
    headwater.ok("source", "add", url + "?2", "--no-check", "--name", "Two")
    assert "first in line" in headwater.ok("explain", "Two")

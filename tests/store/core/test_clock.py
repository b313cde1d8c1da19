"""The database's clock is the one that counts, whatever this machine believes."""

import time

import pytest

from headwater.store.core import clock as clocks
from headwater.store.core.clock import DatabaseClock, database_time, measured_clock
from headwater.store.core.database import Store

YEAR = 365 * 86_400.0


@pytest.fixture(params=[-3 * YEAR, 3 * YEAR], ids=["years behind", "years ahead"])
def wrong_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> float:
    """This machine's clock is wrong from here on."""
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + request.param)
    return float(request.param)


def test_it_shows_the_databases_time_on_a_machine_whose_own_is_wrong(store: Store, wrong_by: float) -> None:
    here = time.time() - (0.0 if store.is_sqlite else wrong_by)  # a file has its machine's time and no other
    clock = measured_clock(store)
    assert clock() == pytest.approx(here, abs=5)
    with store.reading() as connection:
        assert database_time(connection) == pytest.approx(here, abs=5)


def test_between_measurements_it_keeps_running(store: Store) -> None:
    clock = measured_clock(store)
    shown = [clock() for _ in range(1_000)]
    assert shown == sorted(shown)


def test_it_is_measured_again_regularly(postgres_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    steady = clocks._steady()
    monkeypatch.setattr(clocks, "_steady", lambda: steady)
    clock = DatabaseClock(postgres_store)
    stale = [clock.is_stale]
    with postgres_store.reading() as connection:
        clock.measure(connection)
        stale.append(clock.is_stale)
        steady += clocks.MEASURE_EVERY_SECONDS
        stale.append(clock.is_stale)
        clock.measure(connection)
        stale.append(clock.is_stale)
    assert stale == [True, False, True, False]


def test_a_step_of_the_servers_clock_is_followed_and_noise_is_not(
    postgres_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    steady = iter([0.0, 1.0, 10.0, 11.0, 20.0, 21.0, 30.0])
    shown = iter([1000.5, 1010.6, 5020.5])
    monkeypatch.setattr(clocks, "_steady", lambda: next(steady))
    monkeypatch.setattr(clocks, "database_time", lambda connection: next(shown))
    clock = DatabaseClock(postgres_store)
    with postgres_store.reading() as connection:
        clock.measure(connection)
        clock.measure(connection)
        assert clock._ahead == 1000.0, "a tenth of a second is less than the way there and back"
        clock.measure(connection)
    assert clock() == 5030.0

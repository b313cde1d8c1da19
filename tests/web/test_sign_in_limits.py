"""Wrong keys and passwords are counted by who sends them, in bounded memory."""

import pytest

from headwater.web.sign_in_limits import (
    FAILURE_WINDOW_SECONDS,
    MOST_FAILURES,
    MOST_PASSWORD_FAILURES,
    PASSWORD_WINDOW_SECONDS,
    WrongSecrets,
    neighbourhood,
)
from tests.clock import FakeClock


def test_guesses_are_counted_by_address_in_bounded_memory(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.web.sign_in_limits.MOST_ADDRESSES", 3)
    wrong = WrongSecrets(clock)
    for _ in range(MOST_FAILURES):
        wrong.add("192.0.2.1")
    assert wrong.seconds_to_wait("192.0.2.1") == FAILURE_WINDOW_SECONDS
    assert wrong.seconds_to_wait("::ffff:192.0.2.1") == FAILURE_WINDOW_SECONDS
    assert wrong.seconds_to_wait("192.0.2.2") == 0
    clock.advance(-3600)
    assert wrong.seconds_to_wait("192.0.2.1") == 0, "a clock that was set back locks no one out"
    for number in range(3):
        wrong.add(f"198.51.100.{number}")
    clock.advance(3600)
    assert wrong.seconds_to_wait("192.0.2.1") == 0, "the oldest is forgotten"


def test_wrong_passwords_of_many_addresses_count_together(clock: FakeClock) -> None:
    wrong = WrongSecrets(clock)
    for number in range(MOST_PASSWORD_FAILURES):
        wrong.add(f"198.51.{number // 250}.{number % 250}", is_password=True)
    assert wrong.seconds_to_wait("192.0.2.1", is_password=True) == PASSWORD_WINDOW_SECONDS
    assert wrong.seconds_to_wait("192.0.2.1") == 0, "keys are not what was guessed"
    clock.advance(PASSWORD_WINDOW_SECONDS)
    assert wrong.seconds_to_wait("192.0.2.1", is_password=True) == 0


def test_neighbourhood_of_ipv6_is_one_customers_network() -> None:
    assert neighbourhood("2001:db8:1:2::3") == neighbourhood("2001:db8:1:2:ffff::9") == "2001:db8:1:2::/64"
    assert neighbourhood("2001:db8:1:3::3") != neighbourhood("2001:db8:1:2::3")
    assert neighbourhood("testclient") == "testclient"

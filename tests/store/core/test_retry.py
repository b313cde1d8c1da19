"""A long-running process waits for a database that is away, from the start, and says so in one line."""

import signal
import socket
from pathlib import Path

import pytest

from headwater.errors import StoreError
from headwater.store.core import retry as patience
from tests.command import Headwater

pytestmark = pytest.mark.slow


def test_waiting_ends_when_the_database_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("headwater.store.core.retry.time.sleep", pauses.append)

    def open_it() -> str:
        if len(pauses) < 7:
            error = StoreError("the database is away")
            error.passing = True
            raise error
        return "open"

    assert patience.wait_for(open_it) == "open"
    assert pauses == [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 5.0]


@pytest.mark.parametrize(
    ("problem", "passing"),
    [
        ("disk I/O error", False),
        ('connection failed: FATAL:  password authentication failed for user "x"', True),
        ('connection failed: FATAL:  database "x" does not exist', True),
    ],
)
def test_what_waiting_does_not_mend_is_an_error_at_once(problem: str, passing: bool) -> None:
    def open_it() -> None:
        error = StoreError("the database failed: {problem}", problem=problem)
        error.passing = passing
        raise error

    with pytest.raises(StoreError, match="failed"):
        patience.wait_for(open_it)


@pytest.mark.parametrize("command", [("collect", "--loop"), ("worker",), ("serve",)])
def test_a_service_that_starts_first_waits(tmp_path: Path, command: tuple[str, ...]) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        headwater = Headwater(tmp_path, f"postgresql://x:secret@127.0.0.1:{closed.getsockname()[1]}/x")
        process = headwater.start(*command)
        try:
            assert process.stderr is not None
            lines = [process.stderr.readline() for _ in range(2)]
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
    for line in lines:
        assert "refused" in line and "trying again in 0." in line, lines
        assert "secret" not in line


def test_who_is_asked_something_does_not_wait(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        headwater = Headwater(tmp_path, f"postgresql://x@127.0.0.1:{closed.getsockname()[1]}/x")
        assert "refused" in headwater.refused("collect")

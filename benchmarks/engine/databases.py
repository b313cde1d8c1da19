"""The two databases to measure on, and what the PostgreSQL server itself spends."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
from tests.databases import postgres_database

_numbers = itertools.count()


@contextmanager
def new_database(kind: str, directory: Path, server_url: str) -> Iterator[str]:
    """The URL of an empty database on SQLite or PostgreSQL."""
    name = f"benchmark_{next(_numbers)}"
    if kind == "SQLite":
        yield f"sqlite:///{directory / name}.db"
    else:
        with postgres_database(server_url, name) as url:
            yield url


def server_clock(kind: str, server_url: str) -> Callable[[], float]:
    """The CPU seconds that the database's own processes have spent; always 0 on SQLite, which has none."""
    if kind == "SQLite":
        return lambda: 0.0
    with psycopg.connect(server_url) as connection:
        backend = connection.info.backend_pid
        server = psutil.Process(backend).parent()
    assert server is not None

    def spent() -> float:
        ended = server.cpu_times()
        total = ended.children_user + ended.children_system
        for process in (server, *server.children()):
            # In nanoseconds; what psutil tells goes by hundredths of a second, in which a server does much.
            with contextlib.suppress(OSError):
                total += int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[0]) / 1e9
        return total

    return spent

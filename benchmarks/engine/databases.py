"""The two databases to measure on, and what the PostgreSQL server itself spends."""

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
        total = 0.0
        for process in (server, *server.children()):
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += times.user + times.system
            if process == server:
                total += times.children_user + times.children_system
        return total

    return spent

"""Fixtures that every test may use: both databases, an origin server, a clock, seeded randomness."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest
from hypothesis import settings

from headwater.store.core.database import Store
from tests.clock import FakeClock
from tests.databases import copy_sqlite, empty_tables, postgres_database, postgres_server
from tests.examples import examples
from tests.origin import Origin
from tests.plugins import step_plugin
from tests.query_plans import PlanWatcher

__all__ = ["step_plugin"]

DATABASES = ("sqlite", "postgresql")

_shared_server = ExitStack()

settings.register_profile("ring", max_examples=examples(settings().max_examples))
settings.load_profile("ring")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Before xdist starts its workers, start the server they share; they inherit its address.

    A run in the background of a script ignores SIGINT, one under nohup SIGHUP, and so would every process that a test
    starts and signals.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if session.config.getoption("numprocesses", None) and "PYTEST_XDIST_WORKER" not in os.environ:
        os.environ["HEADWATER_TEST_DATABASE_URL"] = _shared_server.enter_context(postgres_server())


def pytest_sessionfinish() -> None:
    _shared_server.close()


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting of the person who runs the tests reaches them."""
    for name in list(os.environ):
        if name.startswith(("HEADWATER_", "COLLECTOR_", "FETCH_INTERVAL_")) and "_TEST_" not in name:
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HEADWATER_LANGUAGE", "en")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server; under xdist, the one that all workers share."""
    with postgres_server() as url:
        yield url


@pytest.fixture(scope="session")
def worker_name() -> str:
    return f"headwater_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"


@pytest.fixture(scope="session")
def postgres_store(postgres_url: str, worker_name: str) -> Iterator[Store]:
    with postgres_database(postgres_url, worker_name) as url, Store.open(url) as store:
        yield store


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "template.db"
    with Store.open(f"sqlite:///{path}") as store, store.writing() as connection:
        connection.exec_driver_sql("SELECT 1")
    return path


@pytest.fixture(params=DATABASES)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty, migrated database; the test runs once on each kind."""
    if request.param == "sqlite":
        return copy_sqlite(request.getfixturevalue("sqlite_template"), tmp_path / "headwater.db")
    store: Store = request.getfixturevalue("postgres_store")
    empty_tables(store)
    return store.url.render_as_string(hide_password=False)


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """An empty store; the test runs once on each kind of database."""
    with Store.open(database_url) as opened:
        watcher = PlanWatcher(opened)
        yield opened
        assert not watcher.scans, "statements that read a whole large table:\n" + "\n".join(watcher.scans)


@pytest.fixture
def origin() -> Iterator[Origin]:
    with Origin() as server:
        yield server


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def rng() -> Random:
    return Random(20_260_101)

"""Killed in their first seconds, while they upgrade, claim or register, processes lose nothing and double nothing."""

import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import Connection, Table, func, select

from headwater.collect.upkeep import KEY as UPKEEP_KEY
from headwater.sources.adding import add_unvisited, read_new_source
from headwater.store.core.database import Store
from headwater.store.core.migrate import HEAD, revision, upgrade
from headwater.store.core.periodic import Turn
from headwater.store.core.schema import schema_differences
from headwater.store.core.settings import set_setting
from headwater.store.core.tables import item_versions, items, pipeline_executions
from headwater.store.pipelines.attaching import attach
from headwater.store.transfer.copying import reflected, set_last_position
from tests.command import Headwater
from tests.databases import postgres_database
from tests.origin import Answer, Origin, Received
from tests.pipeline.making import make_template, step
from tests.rows import fill
from tests.snippet_command import handles_stopping
from tests.store.test_upgrading import check, rows_of

pytestmark = pytest.mark.slow

SOURCES = 5
ITEMS = 4  # of each
ROUNDS = 4
STARTERS = (("collect", "--loop"), ("worker",), ("serve",))


@pytest.fixture(params=["sqlite", "postgresql"])
def own_url(request: pytest.FixtureRequest, tmp_path: Path, worker_name: str) -> Iterator[str]:
    """A database without tables."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'own.db'}"
    else:
        with postgres_database(request.getfixturevalue("postgres_url"), f"{worker_name}_starting") as url:
            yield url


def starting_seconds(command: Headwater) -> float:
    """How long a process takes on this machine, busy as it is, until it uses the database."""
    began = time.monotonic()
    command.ok("key", "list")
    return time.monotonic() - began


def kill_starters(command: Headwater, rng: Random, seconds: float) -> None:
    """Start one of each kind at once, and kill each in its first moments."""
    processes = [command.start(*arguments) for arguments in STARTERS]
    began = time.monotonic()
    moments = sorted((rng.uniform(0.3, 1.6) * seconds, process) for process in processes)
    for moment, process in moments:
        time.sleep(max(0.0, began + moment - time.monotonic()))
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_upgrade_survives_kills_of_all_starters(own_url: str, tmp_path: Path, rng: Random) -> None:
    command = Headwater(tmp_path, own_url)
    command.environment |= {"HEADWATER_PORT": "0", "HEADWATER_ALLOW_HOSTS": "192.0.2.1"}
    with Store(own_url) as store:
        upgrade(store, "0008")
        with store.writing() as connection:
            schema = reflected(connection)
            fill(connection, schema)
            connection.exec_driver_sql(
                "UPDATE sources SET due_at = NULL, next_fetch_at = NULL, is_active = false"
            )
            connection.exec_driver_sql("UPDATE pipeline_executions SET due_at = NULL")
            set_last_position(connection, 3)
            # Upkeep is not due: it would rightly add these old visits up by the hour.
            set_setting(connection, UPKEEP_KEY, asdict(Turn(done_at=time.time())), time.time())
        with store.reading() as connection:
            before = rows_of(connection, schema)
        seconds = starting_seconds(Headwater(tmp_path, f"sqlite:///{tmp_path / 'other.db'}"))
        for _ in range(ROUNDS):
            kill_starters(command, rng, seconds)
            with store.reading() as connection:
                assert revision(connection) in ("0008", HEAD), "an upgrade is all or nothing"
        command.ok("source", "list")
        with store.reading() as connection:
            assert schema_differences(connection) == []
        del before["settings"]  # processes that start note things there
        check(store, before)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_first_visits_and_runs_survive_kills(
    own_url: str, tmp_path: Path, origin: Origin, rng: Random
) -> None:
    command = Headwater(tmp_path, own_url)
    command.environment |= {
        "HEADWATER_PORT": "0",
        "HEADWATER_VISIT_TIMEOUT_SECONDS": "2",  # and so leases are short
        "HEADWATER_POLICY": "interval",
    }
    published = [f"<item><guid>{n}</guid><title>Item {n}</title></item>" for n in range(ITEMS)]

    def document(request: Received) -> Answer:
        return Answer(f"<rss><channel><title>t</title>{''.join(published)}</channel></rss>", delay=0.2)

    seconds = starting_seconds(command)
    with Store.open(own_url) as store:
        template = make_template(store, step("filter_content"))
        with store.writing() as connection:
            for number in range(SOURCES):
                url = origin.route(f"/{number}", document)
                wanted = read_new_source(url, "rss", {"fetch_interval_minutes": 0.01}, str(number))
                attach(
                    connection,
                    template.id,
                    "source",
                    [add_unvisited(connection, wanted, time.time()).id],
                    0.0,
                )
        for number in range(ROUNDS):
            published.append(f"<item><guid>later {number}</guid><title>Later {number}</title></item>")
            kill_starters(command, rng, seconds)
        wanted_items = SOURCES * len(published)
        processes = [command.start(*arguments) for arguments in STARTERS]
        try:
            deadline = time.monotonic() + 120
            while time.monotonic() < deadline and not (
                finished_runs(store) == wanted_items and all(handles_stopping(each.pid) for each in processes)
            ):
                time.sleep(0.1)
        finally:
            for process in processes:
                process.terminate()
            ended = [(process.communicate(timeout=90), process.returncode) for process in processes]
        assert [code for _, code in ended] == [0] * len(STARTERS), ended
        with store.reading() as connection:
            assert schema_differences(connection) == []
            assert count(connection, items) == wanted_items
            assert count(connection, item_versions) == 0, "nothing was changed"
            states = connection.execute(
                select(pipeline_executions.c.item_id, pipeline_executions.c.status)
            ).all()
    assert len({state.item_id for state in states}) == len(states) == wanted_items, "one run an item"
    assert {state.status for state in states} == {"completed"}


def count(connection: Connection, table: Table) -> int:
    return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def finished_runs(store: Store) -> int:
    with store.reading() as connection:
        query = select(func.count()).where(pipeline_executions.c.completed_at.is_not(None))
        return int(connection.execute(query).scalar_one())

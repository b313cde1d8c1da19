"""A worker beside the collector outlives what goes wrong: the process it is in runs for years."""

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import Connection

from headwater.errors import StoreError
from headwater.fetch.client import make_fetcher
from headwater.pipeline import embedded as embedded_module
from headwater.pipeline import runner
from headwater.pipeline.embedded import EmbeddedWorker
from headwater.store.core.database import Store
from headwater.store.pipelines.runs import claim_runs
from tests.databases import copy_sqlite
from tests.pipeline.making import make_runs, make_settings, step, until_ended

pytestmark = pytest.mark.usefixtures("step_plugin")


async def test_it_begins_again_after_an_error(
    sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures = [StoreError("disk I/O error"), StoreError("disk I/O error")]

    def failing_at_first(connection: Connection, *args: object, **kwargs: object) -> object:
        if failures:
            raise failures.pop()
        return claim_runs(connection, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "claim_runs", failing_at_first)
    monkeypatch.setattr(embedded_module, "AGAIN_SECONDS", 0.05)
    with Store.open(copy_sqlite(sqlite_template, tmp_path / "headwater.db")) as store:
        [run_id] = make_runs(store, 1, step("note_test"))
        async with EmbeddedWorker(store, make_settings(tmp_path), make_fetcher) as embedded:
            [run] = await until_ended(store, run_id)
        assert embedded.finished
    assert run.status == "completed"
    assert not failures
    assert "pipelines are not worked on" in caplog.text


async def test_a_stop_does_not_wait_for_the_next_beginning(
    sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*args: object, **kwargs: object) -> None:
        raise StoreError("disk I/O error")

    monkeypatch.setattr(runner, "claim_runs", failing)
    monkeypatch.setattr(embedded_module, "AGAIN_SECONDS", 3_600.0)
    with Store.open(copy_sqlite(sqlite_template, tmp_path / "headwater.db")) as store:
        async with EmbeddedWorker(store, make_settings(tmp_path), make_fetcher) as embedded:
            while "pipelines are not worked on" not in caplog.text:
                await asyncio.sleep(0.01)
        assert embedded.finished

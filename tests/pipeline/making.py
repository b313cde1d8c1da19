"""Items, templates and workers for pipeline tests."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from headwater.config import Settings, load_settings
from headwater.pipeline.templates import read_template
from headwater.pipeline.worker import Worker
from headwater.store.core.bulk import insert_rows
from headwater.store.core.database import Store
from headwater.store.core.tables import items, pipeline_executions, sources
from headwater.store.pipelines.starting import Run, get_run, start_runs
from headwater.store.pipelines.templates import Template, add_template


def make_items(store: Store, count: int, source_id: int = 1) -> list[int]:
    """A source with so many items; their numbers."""
    with store.writing() as connection:
        connection.execute(
            sources.insert().values(
                id=source_id,
                name="A source",
                type="rss.feed",
                url=f"http://origin/{source_id}",
                url_key=f"origin/{source_id}",
                created_at=0,
                updated_at=0,
            )
        )
        columns = ("source_id", "external_id", "id_hash", "title", "item_at", "first_seen_at", "content_hash")
        rows = [
            (source_id, f"id-{n}", f"{n}".encode(), f"Item {n}", 1.0, 1.0, b"x") for n in range(1, count + 1)
        ]
        insert_rows(connection, items, columns, rows)
        query = items.select().where(items.c.source_id == source_id).order_by(items.c.id)
        return [row.id for row in connection.execute(query)]


def make_template(store: Store, *steps: dict[str, Any], name: str = "A template", **more: Any) -> Template:
    with store.writing() as connection:
        return add_template(
            connection, read_template({"name": name, "steps": list(steps), **more}), time.time()
        )


def make_runs(store: Store, count: int, *steps: dict[str, Any], **more: Any) -> list[int]:
    """So many runs of a template with these steps."""
    template = make_template(store, *steps)
    item_ids = make_items(store, count)
    with store.writing() as connection:
        return start_runs(connection, template, item_ids, time.time(), **more)


def step(step_type: str, **config: Any) -> dict[str, Any]:
    """A step of a template; `critical`, `timeout` and `retries` are its own, the rest is its config."""
    written: dict[str, Any] = {"step_type": step_type, "is_critical": config.pop("critical", True)}
    if "timeout" in config:
        written["timeout_seconds"] = config.pop("timeout")
    if "retries" in config:
        written["retries"] = config.pop("retries")
    return {**written, "config": config}


def make_settings(tmp_path: Path, **overrides: Any) -> Settings:
    return load_settings(
        directory=tmp_path, environment={}, overrides={"data_dir": str(tmp_path / "data"), **overrides}
    )


def read_run(store: Store, run_id: int) -> Run:
    with store.reading() as connection:
        return get_run(connection, run_id)


@contextlib.asynccontextmanager
async def working(worker: Worker) -> AsyncIterator["asyncio.Task[bool]"]:
    """The worker at work while the block lasts."""
    task = asyncio.create_task(worker.run())
    try:
        yield task
    finally:
        worker.stop()
        await task


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)


async def until_ended(store: Store, *run_ids: int, seconds: float = 60.0) -> list[Run]:
    query = (
        select(func.count())
        .select_from(pipeline_executions)
        .where(pipeline_executions.c.id.in_(run_ids), pipeline_executions.c.completed_at.is_(None))
    )

    def ended() -> bool:
        with store.reading() as connection:
            return connection.execute(query).scalar_one() == 0

    await until(ended, seconds)
    return [read_run(store, run_id) for run_id in run_ids]

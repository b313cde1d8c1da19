"""Collector and dashboard side by side: when one ends, the other is let end, and the error is told."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi import FastAPI

from headwater.collect.engine import Engine
from headwater.config import load_settings
from headwater.errors import InputError
from headwater.store.core.database import Store
from headwater.web import server
from tests.store.reading.test_search import found, store_texts


async def test_visits_under_way_end_when_the_dashboard_fails(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []

    async def collect(engine: Engine) -> bool:
        while not engine._stopping:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        ended.append("collecting")
        return True

    async def fail(*arguments: object) -> None:
        raise RuntimeError("no more pages")

    monkeypatch.setattr(Engine, "run", collect)
    monkeypatch.setattr(server, "serve_app", fail)
    settings = replace(load_settings(directory=tmp_path, environment={}), port=0)
    with pytest.raises(RuntimeError, match="no more pages"):
        await server.serve(
            store, settings, stopping_on_signals=lambda stop: nullcontext(), on_ready=lambda address: None
        )
    assert ended == ["collecting"]


async def test_search_sees_what_was_collected_without_being_asked(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.web.indexing.LOOK_SECONDS", 0.05)
    stops: list[Callable[[], None]] = []

    def keep(stop: Callable[[], None]) -> AbstractContextManager[None]:
        stops.append(stop)
        return nullcontext()

    settings = replace(load_settings(directory=tmp_path, environment={}), port=0)
    serving = asyncio.create_task(
        server.serve(store, settings, stopping_on_signals=keep, on_ready=lambda address: None)
    )
    with store.writing() as connection:
        store_texts(connection, {"it": "the river rises"})
    async with asyncio.timeout(30):
        while found(store, "river") != {"it"}:
            await asyncio.sleep(0.05)
    stops[0]()
    assert await serving


def test_an_address_this_machine_has_not_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(97, "Address family not supported by protocol")

    monkeypatch.setattr("socket.socket", refuse)
    with pytest.raises(InputError, match=r"cannot listen on \[::1\]:8626: Address family not supported"):
        server.listen("::1", 8626)


async def test_request_that_is_cut_off_at_the_end_is_one_line_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server, "GRACE_SECONDS", 1)
    app, asked, stopped = FastAPI(), asyncio.Event(), asyncio.Event()

    @app.get("/")
    async def hang() -> None:
        asked.set()
        await asyncio.sleep(60)

    with closing(server.listen("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(server.serve_app(app, listener, stopped))
        _, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        async with asyncio.timeout(30):
            await asked.wait()
            stopped.set()
            await serving
        writer.close()
    lines = [record.getMessage() for record in caplog.records if record.name == "uvicorn.error"]
    assert "a request was cut off: the process ends" in lines
    assert not any(record.exc_info for record in caplog.records)

"""For whoever keeps this process alive: `/healthz`, `/readyz`, and `/metrics` for Prometheus."""

from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from sqlalchemy import Connection

from headwater.errors import StoreError
from headwater.store.overview import read_lag
from headwater.store.queue import count_due
from headwater.web.api.auth import welcomes
from headwater.web.context import InContext
from headwater.web.metrics import MEDIA_TYPE, Metrics


def health_routes() -> APIRouter:
    router = APIRouter(include_in_schema=False)
    read_metrics = Metrics()

    @router.get("/healthz")
    async def healthz() -> JSONResponse:
        """This process answers."""
        return JSONResponse({"status": "ok"})

    @router.get("/readyz")
    async def readyz(context: InContext) -> JSONResponse:
        """It can do its work: the database answers, and the collector that runs here lives. How late it is, is told."""
        told: dict[str, Any] = {"status": "ready", "database": "ok"}
        try:
            told["due"], told["lag_seconds"] = await context.store.read(_read_line, context.clock())
        except StoreError:
            told |= {"status": "not ready", "database": "away"}
        if context.is_collecting is None:
            told["collector"] = "not run here"
        elif context.is_collecting():
            told["collector"] = "ok"
        else:
            told |= {"status": "not ready", "collector": "stopped"}
        return JSONResponse(told, status_code=200 if told["status"] == "ready" else 503)

    @router.get("/metrics", dependencies=[welcomes("read")])
    async def metrics(context: InContext) -> Response:
        return PlainTextResponse(await read_metrics.read(context), headers={"Content-Type": MEDIA_TYPE})

    return router


def _read_line(connection: Connection, now: float) -> tuple[int, float]:
    return count_due(connection, now), round(read_lag(connection, now), 3)

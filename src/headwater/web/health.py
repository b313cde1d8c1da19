"""For the supervisor of this process: `/healthz`, `/readyz`, and `/metrics` for Prometheus."""

import logging
import time
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from sqlalchemy import Connection

from headwater.errors import StoreError
from headwater.store.collecting.queue import count_due
from headwater.store.core.settings import set_setting
from headwater.store.reports.overview import read_lag
from headwater.web.api.auth import welcomes
from headwater.web.context import Context, InContext
from headwater.web.metrics import MEDIA_TYPE, Metrics

log = logging.getLogger(__name__)

PROBE_SECONDS = 5.0
PROBE_SETTING = "web.written_at"


def health_routes() -> APIRouter:
    router = APIRouter(include_in_schema=False)
    read_metrics = Metrics()
    can_write = WriteProbe().can_write

    @router.get("/healthz")
    async def healthz() -> JSONResponse:
        """This process answers."""
        return JSONResponse({"status": "ok"})

    @router.get("/readyz")
    async def readyz(context: InContext) -> JSONResponse:
        """It can do its work: the database reads and writes, the collector here lives. How late it is, is told too."""
        told: dict[str, Any] = {"status": "ready", "database": "ok"}
        try:
            told["due"], told["lag_seconds"] = await context.store.read(_read_line, context.clock())
        except StoreError:
            told |= {"status": "not ready", "database": "away"}
        else:
            if not await can_write(context):
                told |= {"status": "not ready", "database": "cannot be written"}
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


class WriteProbe:
    """Tries to write, at most every few seconds: anyone may ask whether we are ready."""

    def __init__(self) -> None:
        self._tried_at = -PROBE_SECONDS
        self._can_write = False

    async def can_write(self, context: Context) -> bool:
        if time.monotonic() - self._tried_at >= PROBE_SECONDS:
            self._tried_at = time.monotonic()
            try:
                await context.store.write(set_setting, PROBE_SETTING, int(context.clock()), context.clock())
            except StoreError as error:
                log.warning("not ready: %s", error)
                self._can_write = False
            else:
                self._can_write = True
        return self._can_write


def _read_line(connection: Connection, now: float) -> tuple[int, float]:
    return count_due(connection, now), round(read_lag(connection, now), 3)

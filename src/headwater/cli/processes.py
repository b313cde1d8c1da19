"""Processes that collect, started and watched by another: by `serve` beside the dashboard, or by `collect --processes`.

Each is told its settings and when to stop through its standard input, and tells what it did through its standard
output. When the process that started them is gone, they are gone too. One that ends unasked is started again.
"""

import asyncio
import contextlib
import logging
import os
import pickle
import signal
import struct
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import orjson

from headwater.config import Settings
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from headwater.store.core.database import Store

log = logging.getLogger("headwater.cli.processes")  # also where this is the program

AGAIN_SECONDS = 5.0
END_SECONDS = 10.0  # to give leases back when everything is to end at once
_REFUSED = 2  # exit status: with these settings it cannot work, and need not be tried again
_STOP, _END = b"s", b"e"
_LENGTH = struct.Struct("!Q")


class Done(NamedTuple):
    """What collectors have done."""

    visits: int = 0
    items_new: int = 0
    items_updated: int = 0
    unchanged: int = 0
    skipped: int = 0
    failed: int = 0


class CollectorProcesses:
    """So many processes that collect. The first also works on the pipelines of a SQLite database."""

    def __init__(self, settings: Settings, count: int) -> None:
        self.done = Done()
        self._settings = settings
        self._count = count
        self._running: dict[int, asyncio.subprocess.Process] = {}
        self._stopped = asyncio.Event()

    @property
    def is_alive(self) -> bool:
        return bool(self._running)

    def stop(self) -> None:
        self._stopped.set()
        for process in self._running.values():
            _say(process, _STOP)

    async def run(self) -> bool:
        keepers = [asyncio.create_task(self._keep(number)) for number in range(self._count)]
        try:
            return all(await asyncio.gather(*keepers))
        finally:
            self._stopped.set()
            await self._end()
            await asyncio.gather(*keepers, return_exceptions=True)

    async def _keep(self, number: int) -> bool:
        """Let one process run until `stop`."""
        while True:
            code = await self._run_one(number)
            if self._stopped.is_set():
                return code == 0
            if code == _REFUSED:  # it has said why
                self.stop()
                return False
            log.warning("a collector ended (exit status %d); another starts in %g s", code, AGAIN_SECONDS)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), AGAIN_SECONDS)
                return True

    async def _run_one(self, number: int) -> int:
        settings = self._settings
        if number:
            settings = replace(settings, pipeline_concurrency=0)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", __name__),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdin is not None  # noqa: S101 - as asked for
        assert process.stdout is not None  # noqa: S101
        self._running[number] = process
        try:
            told = pickle.dumps(settings)
            process.stdin.write(_LENGTH.pack(len(told)) + told)
            if self._stopped.is_set():
                _say(process, _STOP)
            said = await process.stdout.read()
            code = await process.wait()
        finally:
            if process.returncode is not None:
                del self._running[number]
        with contextlib.suppress(ValueError, TypeError):  # it may have been killed
            done = Done(*orjson.loads(said))
            self.done = Done(*map(sum, zip(self.done, done, strict=True)))
        return code

    async def _end(self) -> None:
        """End what still runs."""
        left = list(self._running.values())
        for process in left:
            _say(process, _END)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                await asyncio.gather(*(process.wait() for process in left))
        for process in left:
            if process.returncode is None:
                process.kill()


def _say(process: asyncio.subprocess.Process, word: bytes) -> None:
    if process.stdin is not None and process.returncode is None:
        process.stdin.write(word)


# -- in the process that was started


def _read_settings() -> Settings:
    def read(count: int) -> bytes:
        data = b""
        while len(data) < count:
            if not (part := os.read(0, count - len(data))):
                os._exit(1)
            data += part
        return data

    settings = pickle.loads(read(_LENGTH.unpack(read(_LENGTH.size))[0]))  # noqa: S301 - from who started us
    assert isinstance(settings, Settings)  # noqa: S101
    return settings


def main() -> int:
    from headwater.cli.loop import run
    from headwater.cli.session import log_to_terminal
    from headwater.language import choose_language
    from headwater.store.core.database import Store
    from headwater.store.core.retry import wait_for

    # The terminal tells all its processes; ours is told by the one that started it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    settings = _read_settings()
    choose_language(settings.language)
    log_to_terminal(settings, is_service=True)
    durability = settings.sqlite_durability
    try:
        with wait_for(lambda: Store.open(settings.database, shared=True, durability=durability)) as store:
            finished, done = run(_collect(store, settings))
    except HeadwaterError as error:
        log.error("%s", error)  # noqa: TRY400 - it is one clear line
        return _REFUSED
    except asyncio.CancelledError:
        return 1
    os.write(1, orjson.dumps(list(done)))
    return 0 if finished else 1


async def _collect(store: "Store", settings: Settings) -> tuple[bool, Done]:
    from headwater.web.collecting import CollectingHere

    collecting = CollectingHere(store, settings)
    working = asyncio.ensure_future(collecting.run())

    def listen() -> None:
        said = os.read(0, 100)
        if not said:
            os._exit(1)  # our starter is gone: end at once and without a word
        if _END in said:
            working.cancel()
        collecting.stop()

    loop = asyncio.get_running_loop()
    loop.add_reader(0, listen)
    loop.add_signal_handler(signal.SIGTERM, collecting.stop)
    finished = await working
    tally = collecting.tally
    return finished, Done(*(getattr(tally, name) for name in Done._fields))


if __name__ == "__main__":
    sys.exit(main())

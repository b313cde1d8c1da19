"""libcurl on the event loop: many transfers at once, connections kept while they are worth it, TLS sessions resumed.

libcurl tells which sockets and which timer it waits for; the loop tells libcurl what has happened. Nothing here knows
what a URL means, redirects or conditions.
"""

import asyncio
import select
import ssl
import tempfile
import time
from collections.abc import Awaitable, Container
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

import pycurl

from headwater.errors import SettingError
from headwater.fetch.memory_budget import reserve_memory
from headwater.fetch.transfer import Call, StaleError, Transfer
from headwater.fetch.url import Proxy
from headwater.fetch.usage import add_usage

KEPT_CONNECTIONS = 200  # idle ones: each costs memory and a file descriptor
KEEP_ALIVE_SECONDS = 30
POOLED_TRANSFERS = 100  # idle handles that are kept for the next requests
# libcurl keeps the TLS sessions of 25 servers in one cache and has no setting for it, so there are many caches.
SESSION_CACHES = 256
MOST_SWEEP_SECONDS = 1.0
LEAST_SWEEP_SECONDS = 0.02

SUPPRESS_CONNECT_HEADERS = 265  # an option of libcurl's that pycurl has no name for

_READ, _WRITE = pycurl.CSELECT_IN, pycurl.CSELECT_OUT


class Transport:
    """All transfers of one event loop. `close` ends what is under way."""

    def __init__(self, ca_file: str | Path | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._multi: pycurl.CurlMulti | None = None
        self._bundle = _Bundle(ca_file)
        self._active: dict[pycurl.Curl, Transfer] = {}
        self._pool: list[Transfer] = []
        self._shares: dict[int, pycurl.CurlShare] = {}
        self._idle = _IdleSockets()
        self._watched: dict[int, int] = {}  # what is waited for at each socket
        self._timer: asyncio.Handle | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._idle_since = time.monotonic()
        self._open()

    def send(self, call: Call) -> Awaitable[Transfer]:
        """Make a request. The transfer is to be given back with `release` once its response was looked at."""
        if self._is_closed:
            raise RuntimeError("a Fetcher is used within its `async with`")
        transfer = self._pool.pop() if self._pool else Transfer(self._options())
        transfer.prepare(call, self._share(call), fresh=self._idle.has_news(call.route, self._watched))
        return self._perform(transfer)

    async def _perform(self, transfer: Transfer) -> Transfer:
        try:
            return await self._try(transfer)
        except StaleError:
            again = self._pool.pop() if self._pool else Transfer(self._options())
            again.prepare(transfer.call, self._share(transfer.call), fresh=True)
            return await self._try(again)

    async def _try(self, transfer: Transfer) -> Transfer:
        transfer.future = self._loop.create_future()
        self._active[transfer.curl] = transfer
        self._open().add_handle(transfer.curl)
        self._sweep_within(transfer.shortest_limit / 2)
        try:
            await transfer.future
            if transfer.is_paused:
                await self._continue(transfer)
        except BaseException:
            self._abandon(transfer)
            raise
        finally:
            add_usage(0, transfer.received)
        return transfer

    async def _continue(self, transfer: Transfer) -> None:
        """Take the rest of a large body once there is room for it."""
        transfer.future = self._loop.create_future()
        await reserve_memory(transfer.expected_bytes)
        if not transfer.future.done():  # its time may be over
            transfer.resume()
        await transfer.future

    def release(self, transfer: Transfer) -> None:
        """Take back a transfer for the next request."""
        if len(self._pool) < POOLED_TRANSFERS and not self._is_closed:
            transfer.forget()
            self._pool.append(transfer)
        else:
            transfer.curl.close()

    def _abandon(self, transfer: Transfer) -> None:
        """Have done with a transfer that failed or was cancelled. Its connection is closed."""
        if self._active.pop(transfer.curl, None) is not None and self._multi is not None:
            self._multi.remove_handle(transfer.curl)
        if transfer.future.done() and not transfer.future.cancelled():
            transfer.future.exception()  # seen: who waited for room was cancelled at the same time
        if not transfer.curl.closed:
            self.release(transfer)

    async def close(self) -> None:
        self._is_closed = True
        for transfer in list(self._active.values()):
            if not transfer.future.done():
                transfer.future.cancel()
        await asyncio.sleep(0)  # each of them removes itself from libcurl
        self._close_multi()
        for transfer in self._pool:
            transfer.curl.close()
        self._pool.clear()
        for share in self._shares.values():
            share.close()
        self._bundle.close()

    def _options(self) -> dict[int, Any]:
        """What is the same for all requests."""
        return {
            pycurl.NOSIGNAL: 1,
            pycurl.HTTP_VERSION: pycurl.CURL_HTTP_VERSION_1_1,
            pycurl.FOLLOWLOCATION: 0,
            pycurl.PATH_AS_IS: 1,
            pycurl.HTTP_CONTENT_DECODING: 0,
            SUPPRESS_CONNECT_HEADERS: 1,
            pycurl.PROXY: "",  # none that the environment names
            pycurl.NOPROXY: "",
            pycurl.MAXAGE_CONN: KEEP_ALIVE_SECONDS,
            pycurl.SSLVERSION: pycurl.SSLVERSION_TLSv1_2,
            # Without a key exchange that resists quantum computers: it would add a fifth to every handshake, for
            # documents that everyone may read.
            pycurl.SSL_EC_CURVES: "X25519:P-256:P-384:P-521",
            **self._bundle.options(),
        }

    def _share(self, call: Call) -> pycurl.CurlShare | None:
        """The cache with the TLS sessions of the call's host."""
        if not call.url.startswith("https:"):
            return None
        number = crc32(call.host.encode()) % SESSION_CACHES
        share = self._shares.get(number)
        if share is None:
            share = self._shares[number] = pycurl.CurlShare()
            share.setopt(pycurl.SH_SHARE, pycurl.LOCK_DATA_SSL_SESSION)
        return share

    # -- between libcurl and the loop

    def _open(self) -> pycurl.CurlMulti:
        if self._multi is None:
            self._multi = multi = pycurl.CurlMulti()
            multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
            multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)
            multi.setopt(pycurl.M_MAXCONNECTS, KEPT_CONNECTIONS)
        return self._multi

    def _close_multi(self) -> None:
        if self._multi is not None:
            self._multi.close()
            self._multi = None
        for handle in (self._timer, self._sweep):
            if handle is not None:
                handle.cancel()
        self._timer = self._sweep = None
        for fd in list(self._watched):
            self._watch(pycurl.POLL_REMOVE, fd, None, None)

    def _watch(self, what: int, fd: int, multi: object, data: object) -> None:
        """libcurl's word on what it waits for at a socket."""
        if what == pycurl.POLL_REMOVE:
            what = pycurl.POLL_NONE
        before = self._watched.pop(fd, pycurl.POLL_NONE)
        if what != pycurl.POLL_NONE:
            self._watched[fd] = what
        if what & pycurl.POLL_IN and not before & pycurl.POLL_IN:
            self._loop.add_reader(fd, self._act, fd, _READ)
        elif before & pycurl.POLL_IN and not what & pycurl.POLL_IN:
            self._loop.remove_reader(fd)
        if what & pycurl.POLL_OUT and not before & pycurl.POLL_OUT:
            self._loop.add_writer(fd, self._act, fd, _WRITE)
        elif before & pycurl.POLL_OUT and not what & pycurl.POLL_OUT:
            self._loop.remove_writer(fd)

    def _set_timer(self, milliseconds: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if milliseconds == 0:
            self._timer = self._loop.call_soon(self._act, pycurl.SOCKET_TIMEOUT, 0)
        elif milliseconds > 0:
            self._timer = self._loop.call_later(milliseconds / 1000, self._act, pycurl.SOCKET_TIMEOUT, 0)

    def _act(self, fd: int, events: int) -> None:
        if self._multi is None:
            return
        _, running = self._multi.socket_action(fd, events)
        if running < len(self._active):
            self._take_finished()

    def _take_finished(self) -> None:
        left = 1
        while left and self._multi is not None:
            left, done, failed = self._multi.info_read()
            for curl in done:
                self._finish(curl)
            for curl, code, message in failed:
                self._finish(curl, code, message)

    def _finish(self, curl: pycurl.Curl, code: int = pycurl.E_OK, message: str = "") -> None:
        transfer = self._active.pop(curl)
        assert self._multi is not None  # noqa: S101 - it has just told us
        socket_number = curl.getinfo(pycurl.ACTIVESOCKET)
        self._multi.remove_handle(curl)
        if transfer.future.done():  # cancelled in the same moment
            return
        try:
            transfer.finish(code, message)
        except Exception as error:  # noqa: BLE001 - told to the waiting caller
            transfer.future.set_exception(error)
        else:
            self._idle.note(transfer.call.route, socket_number)
            transfer.future.set_result(None)

    # -- silence

    def _sweep_within(self, seconds: float) -> None:
        seconds = max(LEAST_SWEEP_SECONDS, min(seconds, MOST_SWEEP_SECONDS))
        at = self._loop.time() + seconds
        if self._sweep is None or self._sweep.when() > at + LEAST_SWEEP_SECONDS:
            if self._sweep is not None:
                self._sweep.cancel()
            self._sweep = self._loop.call_at(at, self._end_silent)

    def _end_silent(self) -> None:
        """End transfers of peers that send nothing, or next to nothing; close connections that are not needed."""
        self._sweep = None
        now = time.monotonic()
        shortest = MOST_SWEEP_SECONDS
        for transfer in list(self._active.values()):
            shortest = min(shortest, transfer.shortest_limit / 2)
            if (slow := transfer.overdue(now)) is not None and not transfer.future.done():
                transfer.future.set_exception(slow)
        if self._active:
            self._idle_since = now
            self._sweep_within(shortest)
        elif now < self._idle_since + KEEP_ALIVE_SECONDS:
            self._sweep_within(MOST_SWEEP_SECONDS)
        else:
            # libcurl looks after idle connections only while it is used.
            self._close_multi()


class _IdleSockets:
    """The sockets of responses that ended well: what arrives there unasked must not become the next response.

    libcurl looks for it too, but not within the same second. A number may belong to another socket by now; then a
    connection is made that was not needed.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, Proxy | None], set[int]] = {}

    def note(self, route: tuple[str, Proxy | None], number: int) -> None:
        if number < 0:
            return
        numbers = self._numbers.get(route)
        if numbers is None:
            if len(self._numbers) >= KEPT_CONNECTIONS:
                self._numbers.clear()
            numbers = self._numbers[route] = set()
        numbers.add(number)

    def has_news(self, route: tuple[str, Proxy | None], busy: Container[int]) -> bool:
        """Whether something waits at an idle socket of the route; `busy` are those that responses come on."""
        numbers = self._numbers.get(route)
        if not numbers:
            return False
        poll = select.poll()
        for number in numbers:
            if number not in busy:
                poll.register(number, select.POLLIN)
        news = poll.poll(0)
        numbers.difference_update(number for number, what in news if what & select.POLLNVAL)
        return any(not what & select.POLLNVAL for _, what in news)


class _Bundle:
    """The authorities to trust: the system's, and those of a file of the operator's."""

    def __init__(self, ca_file: str | Path | None) -> None:
        paths = ssl.get_default_verify_paths()
        self._system = paths.cafile or (None if paths.capath else _certifi())
        # Of a folder, libcurl reads every certificate again for each connection.
        self._folder = None if self._system else paths.capath
        self._own: Any = None
        if ca_file is not None:
            self._own = self._combine(Path(ca_file))

    def _combine(self, ca_file: Path) -> Any:
        """libcurl reads one file, so there is one with both."""
        try:
            own = ca_file.read_bytes()
            ssl.create_default_context().load_verify_locations(cadata=own.decode("ascii"))
        except (OSError, ValueError, ssl.SSLError) as error:
            problem = (
                error.strerror if isinstance(error, OSError) and error.strerror else "it is not a PEM file"
            )
            raise SettingError(
                "HEADWATER_CA_FILE: {path} holds no certificates that can be read: {problem}",
                path=ca_file,
                problem=problem,
            ) from None
        file = tempfile.NamedTemporaryFile(prefix="headwater-ca-", suffix=".pem")  # noqa: SIM115 - closed with us
        if self._system is not None:
            with suppress(OSError):
                file.write(Path(self._system).read_bytes() + b"\n")
        file.write(own)
        file.flush()
        return file

    def options(self) -> dict[int, Any]:
        file = self._system if self._own is None else self._own.name
        folder = self._folder
        chosen = {
            pycurl.CAINFO: file,
            pycurl.CAPATH: folder,
            pycurl.PROXY_CAINFO: file,
            pycurl.PROXY_CAPATH: folder,
        }
        return {option: value for option, value in chosen.items() if value is not None}

    def close(self) -> None:
        if self._own is not None:
            self._own.close()


def _certifi() -> str | None:
    """Mozilla's list from the package, where the system has none."""
    try:
        import certifi
    except ImportError:
        return None
    return str(certifi.where())

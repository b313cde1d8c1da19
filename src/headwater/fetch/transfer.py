"""One request and its response on one of libcurl's handles: options, callbacks, and what a failure means.

libcurl speaks HTTP and TLS. What arrives is counted and capped here, in the callbacks; the address of every connection
is checked here, where its socket is opened. Every failure is a TransferError of a specific kind.
"""

import os
import re
import socket
import struct
import time
from asyncio import Future
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal, NamedTuple

import pycurl

from headwater.fetch.body import Body
from headwater.fetch.decode import TooLargeError, UndecodableError
from headwater.fetch.guard import RefusedError
from headwater.fetch.memory_budget import SMALL_BYTES
from headwater.fetch.url import Proxy

# Real servers send policies of tens of kilobytes in one header; floods are longer, in a head or after a body.
MOST_HEAD_BYTES = 262_144
MOST_LINE_BYTES = 65_536
MOST_HEADERS = 256
DISCARDED_BYTES = 16_384  # of a body that is not wanted: reading so much is cheaper than another connection
SPEED_SECONDS = (
    10.0  # in which at least LEAST_BYTES must come, once some have: by drops a response never ends
)
LEAST_BYTES = 1_000
FLOOD_SECONDS = (
    1.0  # without a header or a part of the body, after which is looked whether something else comes
)


class _Code(IntEnum):
    """Codes of libcurl's that pycurl has no names for."""

    WEIRD_SERVER_REPLY = 8
    PROXY = 97
    TOO_LARGE = 100


_REASON_FRAME = re.compile(r"^SSL[^:]*: | \(\d+\)$")
_FRAMING = (b"content-length", b"transfer-encoding")
_TLS_BYTES = 65_536  # of a handshake and of what records add
_RECEIVED, _RECEIVED_AT, _TCP_INFO_BYTES = struct.Struct("=Q"), 128, 136  # tcpi_bytes_received of Linux
_PROXY_LOGIN = (pycurl.PROXYUSERNAME, pycurl.PROXYPASSWORD)

_NO_BODY = Body(0)

Phase = Literal["connect", "read", "speed", "total"]


class TransferError(Exception):
    """Something went wrong before or in the middle of a response."""


class UnknownHostError(TransferError):
    """The name has no address."""


class UnreachableError(TransferError):
    """Nothing listens at the address."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class UntrustedError(TransferError):
    """The server's certificate cannot be verified."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class InsecureError(TransferError):
    """The TLS handshake failed."""


class ProxyFailedError(TransferError):
    """The proxy cannot be reached, or refuses; then with a status."""

    def __init__(self, status: int | None = None) -> None:
        super().__init__(status)
        self.status = status


class SlowError(TransferError):
    """The time for a phase is over."""

    def __init__(self, phase: Phase) -> None:
        super().__init__(phase)
        self.phase = phase


class LostError(TransferError):
    """The connection ended before the response did; `begun` when some of it had come."""

    def __init__(self, begun: bool) -> None:
        super().__init__(begun)
        self.begun = begun


class StaleError(LostError):
    """Only connections were tried that had been kept, and all of them were closed by now."""


class NotHttpError(TransferError):
    """What came is not HTTP, or a flood; `begun`: after the head of a response."""

    def __init__(self, begun: bool) -> None:
        super().__init__(begun)
        self.begun = begun


class BodyError(TransferError):
    """The body is too large, or not what its encoding says."""

    def __init__(self, problem: TooLargeError | UndecodableError, status: int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.status = status


class Deadlines(NamedTuple):
    """Seconds for a whole request, for its connection to be made, and for the next bytes to come."""

    total: float
    connect: float
    read: float


@dataclass(frozen=True, slots=True)
class Call:
    """A request as it goes out. `addresses` are those that the host (or the proxy) may be reached at."""

    url: str  # scheme, host and port; what follows them is in `target`
    host: str
    port: int
    target: str
    headers: list[bytes]
    deadlines: Deadlines
    limit: int  # bytes of the body
    answers: frozenset[int] | None  # statuses whose bodies are read beside the good ones; None: all are
    check: Callable[[str, str, int], None] | None  # of host, address and port; None: any address will do
    resolve: str | None = None  # what libcurl is told instead of looking the name up
    body: bytes | None = field(default=None, repr=False)
    proxy: Proxy | None = None

    @property
    def route(self) -> tuple[str, Proxy | None]:
        """What requests share that may use one connection."""
        return self.url, self.proxy


class Transfer:
    """A handle of libcurl's with the state of the request it is used for. Used again and again."""

    __slots__ = (
        "_begun_at",
        "_beside",
        "_body",
        "_call",
        "_curl",
        "_failure",
        "_has_room",
        "_head_bytes",
        "_head_done",
        "_heard_at",
        "_is_proxied",
        "_is_wanted",
        "_measured_at",
        "_measured_bytes",
        "_options",
        "_resolve",
        "_sent",
        "future",
        "headers",
        "is_paused",
        "received",
        "status",
    )

    future: "Future[None]"

    def __init__(self, options: dict[int, Any]) -> None:
        self._curl = curl = pycurl.Curl()
        for option, value in options.items():
            curl.setopt(option, value)
        curl.setopt(pycurl.HEADERFUNCTION, self._take_header)
        curl.setopt(pycurl.WRITEFUNCTION, self._take_body)
        curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        self._options: dict[int, Any] = {}
        self._resolve: str | None = None

    @property
    def curl(self) -> pycurl.Curl:
        return self._curl

    @property
    def call(self) -> Call:
        return self._call

    @property
    def body(self) -> bytes:
        return self._body.value

    def prepare(self, call: Call, share: pycurl.CurlShare | None, *, fresh: bool) -> None:
        """Get ready for a request; `fresh`: on a new connection."""
        self._call = call
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.received = self._head_bytes = self._measured_bytes = self._sent = 0
        self._head_done = self._is_wanted = self._has_room = self.is_paused = False
        self._beside: int | None = None
        self._failure: Exception | None = None
        self._begun_at = self._heard_at = self._measured_at = time.monotonic()
        self._body = Body(call.limit)
        deadlines = call.deadlines
        curl = self._curl
        curl.setopt(pycurl.URL, call.url)
        curl.setopt(pycurl.REQUEST_TARGET, call.target)
        curl.setopt(pycurl.HTTPHEADER, call.headers)
        self._set(pycurl.TIMEOUT_MS, max(1, round(1000 * deadlines.total)))
        self._set(pycurl.CONNECTTIMEOUT_MS, max(1, round(1000 * min(deadlines.connect, deadlines.total))))
        if call.resolve is not None:
            curl.setopt(pycurl.RESOLVE, [call.resolve])
        self._set_share(share)
        self._set_body(call.body)
        self._set_proxy(call.proxy)
        # libcurl repeats what it sent on a connection that had been closed meanwhile, even if it is not a GET.
        self._set(pycurl.FRESH_CONNECT, int(fresh or call.body is not None))

    def forget(self) -> None:
        """Hold nothing of a response any longer: it may be large, and the handle idle for long."""
        self._body = _NO_BODY
        self.headers = []
        self._failure = None

    def _set(self, option: int, value: Any) -> None:
        """Set an option unless it is set so already: most requests are like those before them."""
        if self._options.get(option) != value:
            self._curl.setopt(option, value)
            self._options[option] = value

    def _set_share(self, share: pycurl.CurlShare | None) -> None:
        if self._options.get(pycurl.SHARE) is not share:
            if self._options.get(pycurl.SHARE) is not None:
                self._curl.unsetopt(pycurl.SHARE)
            if share is not None:
                self._curl.setopt(pycurl.SHARE, share)
            self._options[pycurl.SHARE] = share

    def _set_body(self, body: bytes | None) -> None:
        if body is not None:
            self._curl.setopt(pycurl.POSTFIELDS, body)
        elif self._options.get(pycurl.POST):
            self._curl.setopt(pycurl.HTTPGET, 1)
        self._options[pycurl.POST] = body is not None

    def _set_proxy(self, proxy: Proxy | None) -> None:
        self._is_proxied = proxy is not None
        self._set(pycurl.PROXY, "" if proxy is None else proxy.address)
        login = None if proxy is None else proxy.login
        if self._options.get(pycurl.PROXYUSERNAME) != login:
            for option, value in zip(_PROXY_LOGIN, login or (None, None), strict=True):
                self._curl.unsetopt(option) if value is None else self._curl.setopt(option, value)
            self._options[pycurl.PROXYUSERNAME] = login

    # -- libcurl's callbacks, which must not raise: 0 or -1 instead of the length ends the transfer

    def _open_socket(self, purpose: int, address: Any) -> "_Socket | int":
        call = self._call
        family, kind, protocol, place = address
        try:
            if call.check is not None:
                call.check(call.host, str(place[0]), call.port)
            return _Socket(socket.socket(family, kind, protocol).detach())
        except (OSError, ValueError) as error:
            self._failure = error if isinstance(error, RefusedError) else UnreachableError(str(error))
            return int(pycurl.SOCKET_BAD)

    def _take_header(self, line: bytes) -> int | None:
        self.received += len(line)
        self._head_bytes += len(line)
        self._heard_at = time.monotonic()
        if self._head_bytes > MOST_HEAD_BYTES or len(line) > MOST_LINE_BYTES:
            return self._fail(NotHttpError(self._head_done))
        if self._head_done:
            return None  # a trailer
        if line.startswith(b"HTTP/"):
            self.headers.clear()  # those of an interim response
            self.status = _read_status(line)
        elif line in (b"\r\n", b"\n"):
            return self._end_head()
        else:
            name, _, value = line.partition(b":")
            self.headers.append((name, value.strip(b" \t\r\n")))
            # libcurl does not know a length with spaces before its colon, and would take a part for the whole.
            is_odd = name.endswith((b" ", b"\t")) and name.strip().lower() in _FRAMING
            if is_odd or len(self.headers) > MOST_HEADERS:
                return self._fail(NotHttpError(False))
        return None

    def _end_head(self) -> int | None:
        if 100 <= self.status < 200:
            if self.status == 101:  # we did not ask for another protocol
                return self._fail(NotHttpError(False))
            return None
        self._head_done = True
        answers = self._call.answers
        self._is_wanted = answers is None or 200 <= self.status < 300 or self.status in answers
        headers = {name.lower(): value for name, value in reversed(self.headers)}
        if all(name in headers for name in _FRAMING):
            return self._fail(NotHttpError(False))  # two lengths: which of them others go by is not known
        if not self._is_wanted:
            length = headers.get(b"content-length", b"")
            if self.status not in (204, 304) and not (
                length.isdigit() and len(length) < 6 and int(length) <= DISCARDED_BYTES
            ):
                return -1  # the rest of it would only take time
        elif encoding := headers.get(b"content-encoding"):
            try:
                self._body.decode(encoding.decode("latin-1"))
            except UndecodableError as error:
                return self._fail(BodyError(error, self.status))
        return None

    def _take_body(self, data: bytes) -> int | None:
        if not self._has_room and self._body.size + len(data) > SMALL_BYTES and self._is_wanted:
            if not self.future.done():
                self.future.set_result(None)
            self.is_paused = True
            return int(pycurl.WRITEFUNC_PAUSE)  # the same data comes again
        self.received += len(data)
        self._heard_at = time.monotonic()
        if not self._is_wanted:
            return None
        try:
            self._body.feed(data)
        except (TooLargeError, UndecodableError) as error:
            return self._fail(BodyError(error, self.status))
        return None

    @property
    def expected_bytes(self) -> int:
        """What the body may come to, as far as its head tells."""
        limit = self._call.limit
        headers = {name.lower(): value for name, value in self.headers}
        length = headers.get(b"content-length", b"")
        if b"content-encoding" in headers or not length.isdigit() or len(length) > 11:
            return limit
        return min(int(length), limit)

    def resume(self) -> None:
        """Go on after a pause: there is room for the whole body now."""
        self._has_room, self.is_paused = True, False
        self._heard_at = self._measured_at = time.monotonic()
        self._curl.pause(pycurl.PAUSE_CONT)

    def _fail(self, failure: Exception) -> int:
        self._failure = failure
        return -1

    # -- the end

    def finish(self, code: int = pycurl.E_OK, message: str = "") -> None:
        """Raise what became of the transfer, unless all is well. `code` and `message` are libcurl's."""
        if self._failure is not None:
            raise self._failure
        if self._head_done and not self._is_wanted:
            return  # the status is all that was wanted, however the body ended
        if code != pycurl.E_OK:
            raise self._read_error(code, message)
        if not self._head_done:
            raise LostError(self.received > 0)
        try:
            self._body.finish()
        except UndecodableError as error:
            raise BodyError(error, self.status) from None

    def _read_error(self, code: int, message: str) -> TransferError:
        match code:
            case pycurl.E_OPERATION_TIMEDOUT:
                is_connected = self._curl.getinfo(pycurl.PRETRANSFER_TIME) > 0 or self.received
                limits = self._call.deadlines
                return SlowError("total" if is_connected or limits.connect >= limits.total else "connect")
            case pycurl.E_PEER_FAILED_VERIFICATION:
                return UntrustedError(_read_reason(message))
            case pycurl.E_SSL_CONNECT_ERROR:
                return InsecureError()
            case pycurl.E_COULDNT_RESOLVE_HOST | pycurl.E_URL_MALFORMAT:
                return UnknownHostError()
            case pycurl.E_COULDNT_RESOLVE_PROXY | _Code.PROXY:
                return ProxyFailedError()
            case pycurl.E_COULDNT_CONNECT if self._is_proxied:
                return ProxyFailedError(self._proxy_status())
            case pycurl.E_COULDNT_CONNECT:
                number = self._curl.getinfo(pycurl.OS_ERRNO)
                return UnreachableError(os.strerror(number) if number else "no connection")
            case pycurl.E_UNSUPPORTED_PROTOCOL | _Code.WEIRD_SERVER_REPLY | _Code.TOO_LARGE:
                return NotHttpError(self._head_done)
        if self._is_proxied and not self.received and (status := self._proxy_status()):
            return ProxyFailedError(status)
        if code == pycurl.E_SEND_ERROR and self._is_stale():
            return StaleError(False)
        return LostError(self.received > 0)

    def _is_stale(self) -> bool:
        """libcurl tries kept connections one after the other until it gives up; it has opened none itself then."""
        is_untouched = not self.received and self._call.body is None
        return is_untouched and not self._curl.getinfo(pycurl.NUM_CONNECTS)

    def _proxy_status(self) -> int | None:
        """What a proxy answered that made no tunnel."""
        status = int(self._curl.getinfo(pycurl.HTTP_CONNECTCODE))
        return status if status and not 200 <= status < 300 else None

    def overdue(self, now: float) -> SlowError | NotHttpError | None:
        """What is to be said of a transfer that hears nothing, or next to nothing, for too long."""
        if self.is_paused:
            return None
        limits = self._call.deadlines
        if now >= self._heard_at + FLOOD_SECONDS and self._is_flooded():
            return NotHttpError(self._head_done)
        if now >= self._heard_at + limits.read:
            sent = self._call.body is not None and int(self._curl.getinfo(pycurl.SIZE_UPLOAD))
            if not self.received and (not self._is_connected(now) or sent > self._sent):
                self._heard_at, self._sent = now, int(sent)  # it is being connected, or still sending
                return None
            return SlowError("read")
        if self.received and now >= self._measured_at + SPEED_SECONDS:
            came = self.received - self._measured_bytes
            self._measured_at, self._measured_bytes = now, self.received
            return SlowError("speed") if came < LEAST_BYTES and came < self.received else None
        return None

    def _is_flooded(self) -> bool:
        """Whether much comes that is neither header nor body, such as an extension of a chunk without an end."""
        number = self._curl.getinfo(pycurl.ACTIVESOCKET)
        came = _bytes_received(number) if number >= 0 else None
        if came is None:
            return False
        beside, before = came - self.received, self._beside
        if before is None or beside < before:
            # A kept connection has brought other responses before: only what comes from now on counts.
            self._beside = beside
            return False
        return beside > before + MOST_HEAD_BYTES + _TLS_BYTES

    def _is_connected(self, now: float) -> bool:
        """Whether the request has gone out for as long as may pass without a response."""
        after = self._curl.getinfo(pycurl.PRETRANSFER_TIME)
        return bool(after) and now >= self._begun_at + after + self._call.deadlines.read

    @property
    def shortest_limit(self) -> float:
        return min(self._call.deadlines.read, SPEED_SECONDS)


def _bytes_received(number: int) -> int | None:
    """How much has come on a TCP connection, where the system tells (Linux)."""
    try:
        with socket.socket(fileno=os.dup(number)) as connection:
            told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
    except (OSError, AttributeError):
        return None
    return int(_RECEIVED.unpack_from(told, _RECEIVED_AT)[0]) if len(told) >= _TCP_INFO_BYTES else None


class _Socket:
    """A new socket for libcurl, which takes a copy of it and no notice of this one."""

    __slots__ = ("_number",)

    def __init__(self, number: int) -> None:
        self._number = number

    def fileno(self) -> int:
        return self._number

    def __del__(self) -> None:
        os.close(self._number)


def _read_status(line: bytes) -> int:
    number = line.split(None, 2)[1:2]
    return int(number[0]) if number and number[0].isdigit() else 0


def _read_reason(message: str) -> str:
    """libcurl's words on a certificate, without its prefixes."""
    return _REASON_FRAME.sub("", message).strip() or "certificate verify failed"

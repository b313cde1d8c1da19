"""Connections to the web application, bounded: how long the head of a request may be and take, and how many there are.

The parser keeps whatever comes before the body of a request, however much it is, and nothing else limits how long a
caller may take to send it. Callers need no key for that.
"""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD_BYTES: Final = 65_536
HEAD_SECONDS = 20.0
MOST_CONNECTIONS = 500  # half of the files that a process may open on most systems

_TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class BoundedProtocol(HttpToolsProtocol):
    """One connection. Of too many, the one that has waited longest without a request is closed."""

    _received = 0  # bytes since the request began
    _body = 0  # how many of them are its body
    _is_between = True  # two requests: the head of the next one is not complete
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()
        if len(self.connections) > MOST_CONNECTIONS:
            known = [each for each in self.connections if isinstance(each, BoundedProtocol)]
            min(known, key=_waits_until).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._received += len(data)
        super().data_received(data)
        # What is neither head nor body frames the body, or comes behind it; all of that together has one limit.
        if self._received - 2 * self._body > MOST_HEAD_BYTES:
            self.transport.write(_TOO_LONG)
            self.transport.close()
        elif self._is_between and self._timer is None:
            self._wait_for_head()

    def on_message_begin(self) -> None:
        self._received = self._body = 0
        self._is_between = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_between = False
        self._stop_waiting()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_between = True
        super().on_message_complete()

    def _wait_for_head(self) -> None:
        self._timer = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        if self._has_no_request:
            self.transport.close()

    @property
    def _has_no_request(self) -> bool:
        cycle: Any = self.cycle
        return cycle is None or cycle.response_complete


def _waits_until(connection: BoundedProtocol) -> float:
    """When a connection is closed unless a request comes: first of those that have waited longest."""
    timer = connection._timer
    return timer.when() if timer is not None and connection._has_no_request else float("inf")

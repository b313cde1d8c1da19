"""Counts the requests and bytes of one visit, also of requests that fail."""

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class Usage:
    requests: int = 0
    bytes_received: int = 0


_current: ContextVar[Usage | None] = ContextVar("usage", default=None)


def count_usage() -> Usage:
    """Count from now on the requests of this task and of the tasks it starts."""
    usage = Usage()
    _current.set(usage)
    return usage


def add_usage(requests: int, bytes_received: int) -> None:
    if (usage := _current.get()) is not None:
        usage.requests += requests
        usage.bytes_received += bytes_received

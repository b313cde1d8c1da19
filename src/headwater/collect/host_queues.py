"""Claimed sources waiting for their visit, by host: a slow host's sources wait for it, not in front of others.

Pure bookkeeping: who may start now, who waits for a host that is busy, and who should come back later because
the line at their host is long. Knows nothing of visits, the database or the clock.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import urlsplit

from headwater.model import Source

WAITING = 4  # sources that may wait for a host, for each that it takes at once
SHORTEST_PACE_SECONDS = 0.01
FASTER = 0.3  # how much of the newest visit's duration goes into a host's pace


@dataclass(slots=True)
class _Host:
    active: int = 0  # under way, or ready to start
    waiting: deque[Source] = field(default_factory=deque)
    seconds: float = 0.0  # what a visit here takes, lately


class HostQueues:
    """`per_host` sources of a host may be under way at once."""

    def __init__(self, per_host: int, spacing_seconds: float) -> None:
        self._per_host = per_host
        self._most_waiting = WAITING * per_host
        self._spacing = spacing_seconds
        self._hosts: dict[str, _Host] = {}
        self._ready: deque[Source] = deque()

    @property
    def ready(self) -> int:
        return len(self._ready)

    def add(self, claimed: Iterable[Source]) -> list[tuple[Source, float]]:
        """Line sources up. Answers those whose host's line is full, each with the seconds to stay away."""
        late: list[tuple[Source, float]] = []
        turned_away: dict[str, int] = {}
        for source in claimed:
            name = host_of(source.url)
            host = self._hosts.setdefault(name, _Host())
            if host.active < self._per_host:
                host.active += 1
                self._ready.append(source)
            elif len(host.waiting) < self._most_waiting:
                host.waiting.append(source)
            else:
                place = turned_away[name] = turned_away.get(name, 0) + 1
                pace = max(self._spacing, host.seconds / self._per_host, SHORTEST_PACE_SECONDS)
                late.append((source, (self._most_waiting + place) * pace))
        return late

    def take(self) -> Source | None:
        """The next source that may start."""
        return self._ready.popleft() if self._ready else None

    def done(self, source: Source, seconds: float) -> None:
        """A source that was taken has been visited, in `seconds`: the next one of its host may start."""
        name = host_of(source.url)
        host = self._hosts[name]
        host.seconds += FASTER * (seconds - host.seconds)
        if host.waiting:
            self._ready.append(host.waiting.popleft())
            return
        host.active -= 1
        if not host.active:
            del self._hosts[name]

    def clear(self) -> list[Source]:
        """Remove and return all sources that were not taken."""
        left = [*self._ready, *(source for host in self._hosts.values() for source in host.waiting)]
        for source in self._ready:
            self._hosts[host_of(source.url)].active -= 1
        self._ready.clear()
        for host in self._hosts.values():
            host.waiting.clear()
        self._hosts = {name: host for name, host in self._hosts.items() if host.active}
        return left


@lru_cache(2_000)  # asked several times in the course of a visit
def host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""

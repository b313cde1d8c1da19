"""Limits that several sources share, learnt from status 429.

A platform, a server behind many names, or an account counts the requests of all its feeds together. When sources that
share one of these are refused within an hour, the group gets a pace: slower than the requests that were refused,
slower still after another refusal, faster again after quiet hours. Until a source is refused nothing is counted.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

log = logging.getLogger(__name__)

MEMORY_SECONDS = 3600.0
SLOWER = 1.5  # than the requests that were refused
FASTER = 1.2  # after each hour without a refusal
SHORTEST_GAP, LONGEST_GAP = 1.0, 900.0
_FIRST_REST, _MOST_REST = 60.0, 3600.0
_SHORTEST_WATCH = 60.0
_MOST_GROUPS = 1000


@dataclass(slots=True)
class _Group:
    """Requests since the first refusal, and the pace once there is one."""

    name: str
    since: float
    requests: int = 1
    refused: dict[str, float] = field(default_factory=dict)  # when each of its members was, the last time
    gap: float = 0.0  # 0: no pace
    fastest: float = 0.0  # gap at which the group is as fast again as when it was refused
    next_at: float = 0.0
    line_ends_at: float = 0.0  # of those that were told to come back later
    changed_at: float = 0.0
    refused_at: float = 0.0


class SharedLimits:
    """For one event loop. `if limits:` is False as long as no source was refused."""

    def __init__(
        self, *, patience_seconds: float = 60.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._patience = patience_seconds
        self._clock = clock
        self._groups: dict[str, _Group] = {}

    def __bool__(self) -> bool:
        return bool(self._groups)

    def enter(self, keys: Iterable[str]) -> tuple[float, str | None]:
        """Count a request of these groups. Returns the seconds to wait before it.

        With the name of a group: the wait is longer than a request's patience, so it was not counted.
        """
        now = self._clock()
        groups = [group for key in keys if (group := self._current(key, now)) is not None]
        paced = [group for group in groups if group.gap]
        slowest = max(paced, key=lambda group: group.next_at, default=None)
        if slowest is not None and slowest.next_at - now > self._patience:
            slowest.line_ends_at = max(slowest.line_ends_at, slowest.next_at) + slowest.gap
            return slowest.line_ends_at - now, slowest.name
        at = now if slowest is None else max(slowest.next_at, now)
        for group in groups:
            group.requests += 1
            group.next_at = at + group.gap
        return at - now, None

    def refuse(
        self, source: str, host: str, account: str | None, addresses: Sequence[str], retry_after: float | None
    ) -> None:
        """A source's request was answered with 429."""
        now = self._clock()
        if len(self._groups) >= _MOST_GROUPS:
            self._groups = {key: group for key in list(self._groups) if (group := self._current(key, now))}
        # A wider group needs members that a narrower one does not explain.
        members = {"host": source, "site": host, "account": source, "address": find_site(host)}
        for key in find_keys(host, account, addresses):
            kind, _, name = key.partition(" ")
            group = self._groups.get(key) or _Group(host if kind == "account" else name, now)
            self._groups[key] = group
            group.refused = {each: at for each, at in group.refused.items() if now - at < MEMORY_SECONDS}
            group.refused[members[kind]] = now
            if len(group.refused) > 1 or group.gap:
                _slow_down(group, now, retry_after)

    def _current(self, key: str, now: float) -> _Group | None:
        """The group with what time has changed; None if there is none, or if it is forgotten now."""
        group = self._groups.get(key)
        if group is None:
            return None
        if group.gap and now - group.changed_at >= MEMORY_SECONDS:
            group.gap /= FASTER
            group.changed_at = now
        if group.gap <= group.fastest and all(now - at >= MEMORY_SECONDS for at in group.refused.values()):
            del self._groups[key]
            return None
        return group


def _slow_down(group: _Group, now: float, retry_after: float | None) -> None:
    if not group.gap:
        usual = max(now - group.since, _SHORTEST_WATCH) / group.requests
        group.gap = min(max(SLOWER * usual, SHORTEST_GAP), LONGEST_GAP)
        group.fastest = group.gap / SLOWER / 2.0
        log.info("429 for %d sources of %s: one request in %.0f s", len(group.refused), group.name, group.gap)
    elif now - group.refused_at >= _FIRST_REST:  # answers to requests that were under way count once
        group.gap = min(group.gap * SLOWER, LONGEST_GAP)
        log.info("429 again for %s: one request in %.0f s", group.name, group.gap)
    group.refused_at = group.changed_at = now
    rest = _FIRST_REST if retry_after is None else min(retry_after, _MOST_REST)
    group.next_at = max(group.next_at, now + rest)


def find_keys(host: str, account: str | None, addresses: Sequence[str]) -> list[str]:
    """The groups that a request may belong to, from narrow to wide."""
    keys = [f"host {host}"]
    if (site := find_site(host)) != host:
        keys.append(f"site {site}")
    if account is not None:
        keys.append(f"account {account}")
    return [*keys, *(f"address {address}" for address in addresses)]


def find_site(host: str) -> str:
    """About what was registered: the last two labels, or three under endings such as co.uk."""
    labels = host.split(".")
    if labels[-1].isdigit() or ":" in host:
        return host
    short = len(labels) > 2 and len(labels[-1]) == 2 and len(labels[-2]) <= 3
    return ".".join(labels[-3 if short else -2 :])

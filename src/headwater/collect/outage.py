"""Telling our own network's trouble from the publishers': when most hosts fail at once, the fault is ours."""

from collections import deque

from headwater.errors import FailureKind
from headwater.schedule.backoff import is_our_outage

WINDOW_SECONDS = 300.0
MOST_REMEMBERED = 2_000

# Failures that a broken network of ours would look like. A host that answered at all is not one.
NETWORK_KINDS = frozenset({FailureKind.DNS, FailureKind.CONNECT, FailureKind.TIMEOUT})


class OutageDetector:
    """What became of the latest visits, by host."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, str, bool]] = deque(maxlen=MOST_REMEMBERED)

    def record(self, host: str, at: float, kind: FailureKind | None) -> None:
        self._seen.append((at, host, kind in NETWORK_KINDS))

    def is_ours(self, now: float) -> bool:
        """Whether the failures of the last minutes are our own."""
        latest: dict[str, bool] = {}
        for at, host, failed in self._seen:
            if at > now - WINDOW_SECONDS:
                latest[host] = failed
        failed_hosts = [host for host, failed in latest.items() if failed]
        return is_our_outage(failed_hosts, latest)

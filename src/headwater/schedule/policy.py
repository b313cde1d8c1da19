"""What every policy is: a rule that digests visits into a small state and plans the next visit from it."""

from random import Random
from typing import Protocol

from headwater.model import Observation, Plan


class Policy(Protocol):
    """Pure: no clock, no database, no network. The same objects run in production and in the simulator."""

    @property
    def name(self) -> str: ...

    def digest(self, state: bytes | None, visit: Observation) -> bytes | None:
        """The state after `visit`. A damaged or missing state starts again, never an error."""
        ...

    def plan(self, state: bytes | None, now: float, rng: Random) -> Plan:
        """The next visit, always after `now`, as this policy alone would have it."""
        ...

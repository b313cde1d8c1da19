"""The `interval` policy: a fixed time after the last visit, whatever the source does."""

from dataclasses import dataclass
from random import Random

from headwater.model import Observation, Plan


@dataclass(frozen=True, slots=True)
class IntervalPolicy:
    interval_seconds: float
    name: str = "interval"

    def digest(self, state: bytes | None, visit: Observation) -> bytes | None:
        return state

    def plan(self, state: bytes | None, now: float, rng: Random) -> Plan:
        return Plan(now + self.interval_seconds, {"policy": self.name, "interval": self.interval_seconds})

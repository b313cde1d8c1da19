"""A clock that stands still until it is told to move."""

from dataclasses import dataclass

NOON = 1_700_000_000.0


@dataclass
class FakeClock:
    now: float = NOON

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> float:
        self.now += seconds
        return self.now

"""What a replay comes to: visits, delays, and the figures that judge them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SourceResult:
    """One source's replay. `delays` are in seconds, one for each item that appeared while it was visited."""

    days: float
    visits: int
    useless: int
    missed: int
    delays: Sequence[float]


@dataclass(frozen=True, slots=True)
class Result:
    """A policy over a whole trace. Delays are in seconds; `budget` is None where the policy ran at its own.

    `scale` is the price for `adaptive` and `clairvoyant`, else by how much the policy's waits were stretched.
    """

    policy: str
    budget: float | None
    scale: float
    visits_per_day: float
    mean_delay: float
    median_delay: float
    p95_delay: float
    mean_source_delay: float
    useless_share: float
    missed: int
    items: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def summarise(policy: str, budget: float | None, scale: float, sources: Sequence[SourceResult]) -> Result:
    """Visits per source and day; delays over all items, and the mean of the sources' own means."""
    delays = sorted(delay for source in sources for delay in source.delays)
    days = sum(source.days for source in sources)
    visits = sum(source.visits for source in sources)
    means = [sum(source.delays) / len(source.delays) for source in sources if len(source.delays)]
    return Result(
        policy=policy,
        budget=budget,
        scale=scale,
        visits_per_day=visits / days if days else 0.0,
        mean_delay=sum(delays) / len(delays) if delays else 0.0,
        median_delay=find_quantile(delays, 0.5),
        p95_delay=find_quantile(delays, 0.95),
        mean_source_delay=sum(means) / len(means) if means else 0.0,
        useless_share=sum(source.useless for source in sources) / visits if visits else 0.0,
        missed=sum(source.missed for source in sources),
        items=len(delays),
    )


def find_quantile(ascending: Sequence[float], share: float) -> float:
    return ascending[min(int(share * len(ascending)), len(ascending) - 1)] if ascending else 0.0

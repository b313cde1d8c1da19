"""What a replay comes to: visits, delays, and the numbers they are judged by."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SourceResult:
    """One source's replay. `delays` are in seconds, one per item that appeared while it was visited."""

    days: float
    visits: int
    useless: int
    missed: int
    delays: Sequence[float]


@dataclass(frozen=True, slots=True)
class Result:
    """A policy over a whole trace. Delays are in seconds; `budget` is None where it ran at its own."""

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
    """Visits per source and day; delays over all items, and their mean over sources' own means."""
    import numpy as np

    delays = [np.asarray(source.delays, dtype=float) for source in sources]
    delays = [each[each >= 0.0] for each in delays]
    every = np.concatenate(delays) if delays else np.zeros(0)
    days = sum(source.days for source in sources)
    visits = sum(source.visits for source in sources)
    means = [float(each.mean()) for each in delays if len(each)]
    some = len(every) > 0
    return Result(
        policy=policy,
        budget=budget,
        scale=scale,
        visits_per_day=visits / days if days else 0.0,
        mean_delay=float(every.mean()) if some else 0.0,
        median_delay=float(np.percentile(every, 50)) if some else 0.0,
        p95_delay=float(np.percentile(every, 95)) if some else 0.0,
        mean_source_delay=sum(means) / len(means) if means else 0.0,
        useless_share=sum(source.useless for source in sources) / visits if visits else 0.0,
        missed=sum(source.missed for source in sources),
        items=len(every),
    )

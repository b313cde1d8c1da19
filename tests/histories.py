"""Made-up sources of every kind that scheduling must know: nothing here is a real history."""

from random import Random

DAY = 86400.0
MONDAY = 1_700_438_400.0  # 2023-11-20T00:00:00Z


def even(per_day: float, days: int, seed: int = 1, start: float = MONDAY) -> list[float]:
    """No rhythm at all."""
    rng = Random(seed)
    times = []
    at = start
    while (at := at + rng.expovariate(per_day / DAY)) < start + days * DAY:
        times.append(at)
    return times


def at_hour(
    hour: float, days: int, spread_minutes: float = 5, weekdays: bool = False, start: float = MONDAY
) -> list[float]:
    """Once a day at a fixed hour (UTC), maybe on weekdays only."""
    rng = Random(2)
    return [
        start + day * DAY + hour * 3600 + rng.uniform(0, spread_minutes * 60)
        for day in range(days)
        if not weekdays or day % 7 < 5
    ]


def hourly(days: int, start: float = MONDAY) -> list[float]:
    """Within two minutes after every full hour."""
    rng = Random(3)
    return [start + hour * 3600 + rng.uniform(0, 120) for hour in range(days * 24)]


def merged(*histories: list[float]) -> list[float]:
    return sorted(time for history in histories for time in history)

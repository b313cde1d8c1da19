"""The soak of `make soak`, as short as it makes sense: it finds nothing. What there is to find is found."""

import pytest

from tests.soak.measuring import Meter, Series, bookkeeping_leaks
from tests.soak.run import DATABASES, soak

pytestmark = pytest.mark.slow

SEED = 20_261_115


@pytest.mark.timeout(900)
@pytest.mark.parametrize("database", DATABASES)
def test_a_short_soak_finds_nothing(database: str) -> None:
    told: list[str] = []
    report = soak(30.0, [database], 12, SEED, told.append)
    print("\n".join([*told, *report.lines]))
    assert report.findings == []
    assert any("visits" in line for line in report.lines)


def test_growth_is_told_from_noise() -> None:
    seconds = [float(second) for second in range(600)]
    noise = [second * 7 % 5 for second in range(600)]
    flat = Series(seconds, [100.0 + each for each in noise], [20 + each for each in noise])
    leaking = Series(
        seconds,
        [100.0 + second / 20 + each for second, each in zip(seconds, noise, strict=True)],
        [20 + second // 30 for second in range(600)],
    )
    warming = Series(seconds, [100.0 + min(second, 200) for second in seconds], [20] * 600)
    short = Series(seconds[:60], [100.0 + second for second in seconds[:60]], list(range(60)))
    meter = Meter()
    meter.series |= {"flat": flat, "leaking": leaking, "warming": warming, "short": short}
    assert [leak.partition(":")[0] for leak in meter.leaks(8.0, 8.0)] == ["leaking", "leaking"]
    assert leaking.per_hour() == pytest.approx(180, rel=0.1)
    assert any("leaking" in line for line in meter.table())


def test_unaccounted_rows_are_found() -> None:
    assert bookkeeping_leaks({"items": 10**6, "sources": 60, "procrastinate_jobs": 10}, 60) == []
    assert "procrastinate_jobs: 5000 rows" in bookkeeping_leaks({"procrastinate_jobs": 5000}, 60)[0]

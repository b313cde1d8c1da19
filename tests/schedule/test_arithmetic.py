"""The arithmetic on packed states: the same plans as it is and compiled."""

from random import Random

import pytest

from headwater.model import Observation
from headwater.schedule import arithmetic, kernel, layout
from headwater.schedule.arithmetic import Compiled, Plain, sum_day

START = 1_700_000_000.0
DAY = 86400.0


def test_the_day_is_summed_alike_as_it_is_and_when_compiled() -> None:
    rng = Random(5)
    vector = [0.0] * layout.SIZE
    for bin_ in range(layout.DAY, layout.DAY + layout.DAY_BINS):
        vector[bin_] = float(rng.randrange(60_000))
    sums = [0.0] * kernel.SUMS_SIZE
    kernel.sum_day(vector, sums)
    assert sum_day(vector) == sums


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    pytest.importorskip("numba")
    return Compiled()


def visits(rng: Random, per_day: float) -> list[Observation]:
    """Half a year of a source, seen at odd times; its dates are whole seconds, and some are wrong."""
    at, published = START, START - 30 * DAY
    seen: list[Observation] = []
    while at < START + 180 * DAY:
        times = []
        while published <= at:
            times.append(float(int(published)))
            published += rng.expovariate(per_day / DAY)
        if rng.random() < 0.02:
            times.append(at + 3 * DAY)
        outcome = "new" if times else "unchanged"
        seen.append(
            Observation(at, outcome, tuple(times), min(len(times), 20), not seen, len(times) > 20)  # type: ignore[arg-type]
        )
        at += rng.uniform(0.02, 2.0) * DAY
    return seen


@pytest.mark.parametrize("per_day", [0.05, 1.0, 8.0, 200.0])
def test_states_and_plans_are_the_same(compiled: Compiled, per_day: float) -> None:
    rng = Random(per_day)
    plain = Plain()
    one: bytes | None = None
    two: bytes | None = None
    for visit in visits(rng, per_day):
        one, two = plain.digest(one, visit), compiled.digest(two, visit)
        assert layout.unpack_state(one) == pytest.approx(layout.unpack_state(two), rel=1e-9, abs=1e-9)
        price = rng.choice((1.0, 100.0, 800.0, 1e5))
        assert plain.plan(one, visit.at, price) == pytest.approx(
            compiled.plan(one, visit.at, price), rel=1e-9
        )


@pytest.mark.parametrize("state", [None, b"", b"\x01" * layout.PACKED_BYTES])
def test_without_a_state_that_can_be_trusted_both_begin_anew(compiled: Compiled, state: bytes | None) -> None:
    visit = Observation(START, "new", (START - 60, START - DAY), 2, first=True)
    assert Plain().digest(state, visit) == compiled.digest(state, visit)
    assert Plain().plan(state, START, 800.0) == pytest.approx(compiled.plan(state, START, 800.0), rel=1e-12)


def test_a_visit_from_before_the_last_begins_the_state_anew(compiled: Compiled) -> None:
    state = Plain().digest(None, Observation(START, "new", (START - 60,), 1, first=True))
    earlier = Observation(START - DAY, "unchanged", (), 0)
    assert compiled.digest(state, earlier) == Plain().digest(state, earlier)


def test_a_compiler_that_fails_leaves_things_as_they_are(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*modules: object, **more: object) -> None:
        raise RuntimeError("no compiler today")

    pytest.importorskip("numba")
    before = Plain()
    monkeypatch.setattr(arithmetic, "_current", before)
    monkeypatch.setattr(arithmetic, "is_compiled", lambda: True)
    monkeypatch.setattr(arithmetic, "compile_kernel", broken)
    arithmetic.use_compiled()
    assert arithmetic.current() is before
    assert "cannot be compiled" in caplog.text
    monkeypatch.setattr(arithmetic, "is_compiled", lambda: False)
    arithmetic.use_compiled()
    assert arithmetic.current() is before


def test_many_visits_use_the_compiled_arithmetic(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    monkeypatch.setattr(arithmetic, "_current", Plain())
    arithmetic.use_compiled()
    assert isinstance(arithmetic.current(), Compiled)

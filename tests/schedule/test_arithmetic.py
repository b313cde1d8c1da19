"""The arithmetic on packed states: the same plans compiled and in the interpreter."""

from pathlib import Path
from random import Random

import pytest

from headwater.model import Hints, Observation
from headwater.schedule import arithmetic, layout
from headwater.schedule.arithmetic import Arithmetic, Compiled, Interpreted, load_native, sum_day
from headwater.schedule.kernel import profile
from headwater.schedule.kernel.workspace import MARGIN, REACH

START = 1_700_000_000.0
DAY = 86400.0


def test_sum_day_is_the_same_in_both_forms() -> None:
    rng = Random(5)
    vector = [0.0] * layout.SIZE
    for bin_ in range(layout.DAY, layout.DAY + layout.DAY_BINS):
        vector[bin_] = float(rng.randrange(60_000))
    sums = [0.0] * (REACH + 1)
    profile.sum_day(vector, sums, MARGIN, REACH)
    assert sum_day(vector) == sums


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    modules = load_native()
    if modules is None:
        pytest.skip("nothing is compiled here")
    return Compiled(modules)


def visits(rng: Random, per_day: float, wrong: float = 0.02) -> list[Observation]:
    """Half a year of a source, seen at odd times; its dates are whole seconds, and some are wrong."""
    at, published = START, START - 30 * DAY
    seen: list[Observation] = []
    while at < START + 180 * DAY:
        times = []
        while published <= at:
            times.append(float(int(published)))
            published += rng.expovariate(per_day / DAY) if per_day < 20 else 3600.0 + rng.uniform(-60, 60)
        if rng.random() < wrong:
            times.append(at + 3 * DAY)
        outcome = "new" if times else "unchanged"
        hints = Hints(utc_offset_seconds=3600.0)
        shown = min(len(times), 20)
        seen.append(
            Observation(at, outcome, tuple(times), shown, not seen, len(times) > 20, hints)  # type: ignore[arg-type]
        )
        at += rng.uniform(0.02, 2.0) * DAY
    return seen


@pytest.mark.parametrize(("per_day", "wrong"), [(0.05, 0.0), (1.0, 0.02), (8.0, 0.5), (24.0, 0.02)])
def test_states_and_plans_are_the_same_compiled_and_interpreted(
    compiled: Compiled, per_day: float, wrong: float
) -> None:
    rng = Random(per_day)
    plain = Interpreted()
    one: bytes | None = None
    two: bytes | None = None
    for visit in visits(rng, per_day, wrong):
        one, two = plain.digest(one, visit, None), compiled.digest(two, visit, None)
        assert layout.unpack_state(one) == pytest.approx(layout.unpack_state(two), rel=1e-9, abs=1e-9)
        price, shortest = rng.choice((1.0, 100.0, 800.0, 1e5)), rng.choice((60.0, 300.0, 3600.0))
        assert plain.plan(one, visit.at, price, shortest) == pytest.approx(
            compiled.plan(one, visit.at, price, shortest), rel=1e-9, abs=1e-9
        )


@pytest.mark.parametrize("state", [None, b"", b"\x01" * layout.PACKED_BYTES])
def test_without_a_valid_state_both_start_again(compiled: Compiled, state: bytes | None) -> None:
    visit = Observation(START, "new", (START - 60, START - DAY), 2, first=True)
    assert Interpreted().digest(state, visit, None) == compiled.digest(state, visit, None)
    one, two = (each.plan(state, START, 800.0, 300.0) for each in (Interpreted(), compiled))
    assert one == pytest.approx(two, rel=1e-12)


def test_visit_from_before_the_last_starts_the_state_again(compiled: Compiled) -> None:
    state = Interpreted().digest(None, Observation(START, "new", (START - 60,), 1, first=True), None)
    earlier = Observation(START - DAY, "unchanged", (), 0)
    assert compiled.digest(state, earlier, None) == Interpreted().digest(state, earlier, None)


def test_source_without_history_begins_with_the_rate_of_its_kind() -> None:
    plain = Interpreted()
    undated = Observation(START, "new", (START, START), 2, first=True)
    waits = []
    for rate in (0.1 / DAY, None, 10.0 / DAY):
        state = plain.digest(None, undated, rate)
        waits.append(plain.plan(state, START, 800.0, 300.0)[0])
    assert waits[0] > waits[1] > 2 * waits[2]
    dated = Observation(START, "new", (START - 5 * DAY, START - DAY), 2, first=True)
    assert plain.digest(None, dated, 10.0 / DAY) == plain.digest(None, dated, None), "dates say more"


def test_compiled_copies_of_other_sources_are_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(arithmetic, "__file__", str(tmp_path / "arithmetic.py"))
    assert load_native.__wrapped__() is None, "none were built"
    (tmp_path / "native").mkdir()
    (tmp_path / "native" / "built_from").write_text("1")
    assert load_native.__wrapped__() is None, "they were built of something else"


def test_compile_variable_forces_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_COMPILE", "0")
    assert load_native.__wrapped__() is None


def test_current_arithmetic_is_one_of_the_two() -> None:
    found: Arithmetic = arithmetic.current()
    assert isinstance(found, Compiled if load_native() else Interpreted)

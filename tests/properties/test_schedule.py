"""What holds for every plan, whatever the source does."""

from random import Random
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import FailureKind
from headwater.model import Hints, Observation
from headwater.schedule.adaptive import AdaptivePolicy
from headwater.schedule.backoff import Failure
from headwater.schedule.cadence import CadencePolicy, unpack_stats
from headwater.schedule.compose import Limits, plan_next
from headwater.schedule.hints import find_floor
from headwater.schedule.interval import IntervalPolicy
from headwater.schedule.policy import Policy
from headwater.simulate.engine import replay_source
from headwater.simulate.trace import Conditions, SourceTrace
from tests.driving import drive
from tests.examples import examples
from tests.histories import DAY, MONDAY

LOTS = settings(max_examples=examples(100), deadline=None)
policies: st.SearchStrategy[Policy] = st.one_of(
    st.floats(1e-2, 1e7).map(AdaptivePolicy),
    st.just(CadencePolicy()),
    st.floats(1, 1e7).map(IntervalPolicy),
)
seconds = st.one_of(st.none(), st.floats(-10, 1e9))
hints = st.builds(
    Hints,
    max_age_seconds=seconds,
    retry_after_seconds=seconds,
    ttl_seconds=seconds,
    update_period_seconds=seconds,
    skip_hours=st.lists(st.integers(0, 23), max_size=24).map(tuple),
    skip_days=st.lists(st.integers(0, 6), max_size=7).map(tuple),
)
failures = st.one_of(
    st.none(),
    st.builds(
        Failure,
        count=st.integers(0, 50),
        kind=st.one_of(st.none(), st.sampled_from(FailureKind)),
        retry_after_seconds=seconds,
    ),
)
gap_lists = st.lists(st.one_of(st.floats(0, 600), st.floats(0, 10 * DAY)), max_size=60)
histories = st.lists(
    st.tuples(st.floats(1, 3 * DAY), st.lists(st.floats(-40 * DAY, 2 * DAY), max_size=25), st.booleans()),
    min_size=1,
    max_size=12,
)


@LOTS
@given(
    policies, histories, hints, failures, st.integers(0, 10**6), st.floats(60, 3600), st.floats(7200, 7 * DAY)
)
def test_plans_keep_to_their_bounds_and_to_their_generator(
    policy: Policy,
    visits: list[tuple[float, list[float], bool]],
    wishes: Hints,
    failure: Failure | None,
    seed: int,
    shortest: float,
    longest: float,
) -> None:
    limits = Limits(shortest, longest)
    state: bytes | None = None
    now = MONDAY
    for wait, offsets, overflow in visits:
        now += wait
        times = tuple(now + offset for offset in offsets)  # from the past, the future, in any order
        outcome = "new" if times else "unchanged"
        seen = Observation(now, outcome, times, len(times), overflow=overflow, hints=wishes)  # type: ignore[arg-type]
        before = state
        state, plan = plan_next(policy, before, seen, None, limits, now, Random(seed))
        assert plan_next(policy, before, seen, None, limits, now, Random(seed)) == (state, plan)
        floor = find_floor(wishes, now)
        highest = max(now + longest, floor.at if floor else 0.0)
        assert now + shortest <= plan.next_at
        assert plan.next_at >= (floor.at if floor else now)
        assert plan.next_at <= highest + 24 * 3600 * bool(wishes.skip_hours or wishes.skip_days) + 1e-3
        assert state is None or len(state) <= 1024
    if failure is not None:
        broken = Observation(now, "failed", hints=wishes)
        after, plan = plan_next(policy, state, broken, failure, limits, now, Random(seed))
        assert_nothing_learned(policy, state, after)
        assert plan.next_at > now
        assert plan.next_at >= (floor.at if floor else now)


def assert_nothing_learned(policy: Policy, before: bytes | None, after: bytes | None) -> None:
    """A failed visit says nothing of when a source publishes. Cadence counts it, as the statistics do."""
    if not isinstance(policy, CadencePolicy):
        assert after == before
        return
    (counted, times), (counted_after, times_after) = unpack_stats(before), unpack_stats(after)  # type: ignore[misc]
    assert times_after == times
    assert counted_after.check_count == counted.check_count + 1
    assert counted_after.hit_count == counted.hit_count
    assert counted_after.last_article_at == counted.last_article_at


@LOTS
@given(policies, st.binary(max_size=700), st.floats(MONDAY, MONDAY + DAY))
def test_any_bytes_at_all_are_survived(policy: Policy, state: bytes, now: float) -> None:
    assert policy.plan(state, now, Random(1)).next_at > now
    again = policy.digest(state, Observation(now, "new", (now - 60.0,), 1))
    assert policy.plan(again, now, Random(1)).next_at > now


class SimulatorChance(Random):
    """The generator that the simulator's loop has inside, for a source of this name."""

    def __init__(self, name: str) -> None:
        self._seed = 1 + crc32(name.encode()) % 2147483646

    def random(self) -> float:
        self._seed = self._seed * 16807 % 2147483647
        return self._seed / 2147483647


@pytest.mark.parametrize("name", ["adaptive", "cadence"])
@LOTS
@given(gaps=gap_lists, scale=st.floats(20, 20_000), window=st.integers(1, 30))
def test_production_and_simulator_make_the_same_visits(
    name: str, gaps: list[float], scale: float, window: int
) -> None:
    times = [MONDAY - 10 * DAY]
    for gap in gaps:
        times.append(times[-1] + gap)
    start, end = MONDAY, MONDAY + 5 * DAY
    times = [float(round(time)) for time in times if time <= end]
    if name == "adaptive":
        driven = drive(
            AdaptivePolicy(scale), times, start, end, window=window, rng=SimulatorChance("made up")
        )
    else:
        scale = 1.0
        driven = drive(CadencePolicy(), times, start, end, window=10**6, rng=Random(0))
    result = replay_source(
        SourceTrace("made up", tuple(times), start, end),
        name,
        scale,
        Conditions(window, 300.0, 7 * DAY),
    )
    assert result.visits == len(driven.visits)
    seen = [delay for delay in result.delays if delay >= 0.0]
    assert seen == pytest.approx(driven.delays, abs=1e-3)

"""What the end of a step means, as a rule: no state of a run is a dead end, and no attempt is forgotten."""

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from headwater.pipeline.advance import (
    LONGEST_ASKED_SECONDS,
    LONGEST_RETRY_SECONDS,
    cancelled,
    decide,
    handed_on,
    idempotency_key,
    interrupted,
    previous_outputs,
    retry_seconds,
)
from headwater.pipeline.steps.base import PassingStepError, StepError, StepResult
from headwater.store.pipelines.runs import ClaimedRun, RunStep
from headwater.views.items import EXAMPLE

NOW = 1_000.0


@st.composite
def claimed_runs(draw: st.DrawFn) -> ClaimedRun:
    count = draw(st.integers(1, 5))
    index = draw(st.integers(0, count - 1))
    steps = [
        RunStep(n, draw(st.sampled_from(("enrich_content", "note_test"))), draw(st.booleans()), {}, None, 2)
        for n in range(count)
    ]
    for n in range(index):
        steps[n] = replace(steps[n], status="completed", output={"n": n}, attempts=1)
    steps[index] = replace(
        steps[index], status="running", attempts=draw(st.integers(1, 4)), started_at=NOW - 1
    )
    return ClaimedRun(7, 3, 1, 5, 0, 0, {}, replace(EXAMPLE, id=9), tuple(steps), index)


outcomes = st.sampled_from(
    (
        StepResult({"a": 1}),
        StepResult({"a": 1}, end_run=True),
        StepError("no"),
        PassingStepError("not now"),
    )
)


@given(run=claimed_runs(), outcome=outcomes, seed=st.integers(0, 9))
def test_a_run_either_ends_or_goes_on(run: ClaimedRun, outcome: StepResult | StepError, seed: int) -> None:
    end = decide(run, outcome, NOW, Random(seed))
    after = end.next_run()
    assert (end.completed_at is not None) == (end.status in ("completed", "failed", "skipped"))
    if end.keeps_lease:
        assert end.index == run.index + 1
        assert (after.step.status, after.step.attempts) == ("running", 1)
        waiting = handed_on(end, NOW).next_run()
        assert (waiting.step.status, waiting.step.attempts) == ("pending", 0)
        assert handed_on(end, NOW).due_at == NOW
    elif end.completed_at is None:
        assert isinstance(outcome, PassingStepError)
        assert end.due_at is not None and end.due_at > NOW
        assert (after.step.status, end.index) == ("pending", run.index)
        assert run.step.attempts <= run.step.retries
    else:
        assert handed_on(end, NOW) == end
        assert "running" not in {step.status for step in after.steps}
    ended = after.steps[run.index]
    if isinstance(outcome, StepResult):
        assert (ended.status, ended.output) == ("completed", {"a": 1})
        assert end.status == ("skipped" if outcome.end_run else end.status)
    elif end.completed_at is not None and end.status == "failed":
        assert run.step.is_critical
    elif ended.status == "skipped":
        assert not run.step.is_critical
    assert after.steps[: run.index] == run.steps[: run.index], "what is done is done"


@given(run=claimed_runs())
def test_an_interruption_leaves_no_trace_and_a_cancellation_no_work(run: ClaimedRun) -> None:
    back = interrupted(run, NOW).next_run()
    assert (back.step.status, back.step.attempts) == ("pending", run.step.attempts - 1)
    gone = cancelled(run, NOW).next_run()
    assert {step.status for step in gone.steps[run.index :]} == {"skipped"}
    assert gone.steps[: run.index] == run.steps[: run.index]


@given(run=claimed_runs())
def test_names_and_keys(run: ClaimedRun) -> None:
    assert len(previous_outputs(run)) == run.index
    for number, name in enumerate(previous_outputs(run), start=1):
        assert name in (f"step_{number}_enrich", f"step_{number}_note")
    key = idempotency_key(run)
    assert key == idempotency_key(replace(run, lease_no=99))
    assert key != idempotency_key(replace(run, rerun_no=1)) != idempotency_key(replace(run, forced_no=1))


@given(attempts=st.integers(1, 1_000), seed=st.integers(0, 99))
def test_waits_grow_and_are_bounded(attempts: int, seed: int) -> None:
    wait = retry_seconds(attempts, Random(seed))
    assert 1.0 <= wait <= 1.25 * LONGEST_RETRY_SECONDS
    assert retry_seconds(attempts + 2, Random(seed)) >= wait


@given(run=claimed_runs(), asked=st.floats(0, 1e9), seed=st.integers(0, 9))
def test_a_service_is_left_alone_for_as_long_as_it_asks(run: ClaimedRun, asked: float, seed: int) -> None:
    busy = PassingStepError("busy")
    busy.retry_after_seconds = asked
    end = decide(run, busy, NOW, Random(seed))
    if end.due_at is not None and not end.keeps_lease and end.completed_at is None and end.index == run.index:
        assert end.due_at >= NOW + min(asked, LONGEST_ASKED_SECONDS)
        assert end.due_at <= NOW + max(LONGEST_ASKED_SECONDS, 1.25 * LONGEST_RETRY_SECONDS)

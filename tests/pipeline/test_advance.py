"""What the end of a step means, as a rule: no state of a run is a dead end, and no attempt is forgotten."""

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import InputError
from headwater.model import Result
from headwater.pipeline import advance
from headwater.pipeline.advance import (
    LONGEST_ASKED_SECONDS,
    LONGEST_RETRY_SECONDS,
    MOST_CRASHES,
    Workbench,
    cancelled,
    decide,
    handed_on,
    idempotency_key,
    interrupted,
    perform,
    previous_outputs,
    retry_seconds,
)
from headwater.pipeline.steps.base import (
    Outgoing,
    PassingStepError,
    Step,
    StepConfig,
    StepContext,
    StepError,
    StepResult,
)
from headwater.services.targets import Message
from headwater.store.pipelines.runs import ClaimedRun, RunStep, StepEnd
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


Act = Callable[[StepContext], Awaitable[StepResult]]


class Acting(Step):
    """A step that does what the test says."""

    step_type = "acting_test"
    config_model = StepConfig
    timeout_seconds = 5.0

    def __init__(self, act: Act) -> None:
        self._act = act

    async def run(self, context: StepContext, config: StepConfig) -> StepResult:
        return await self._act(context)


Performing = Callable[..., Awaitable[StepEnd]]


@pytest.fixture
def performing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Performing:
    """Performs the second of two steps, without a database."""

    async def perform_step(act: Act, *, cancelled: bool = False, **fields: object) -> StepEnd:
        monkeypatch.setattr(advance, "find_step", lambda step_type: Acting(act))
        first = RunStep(
            0, "enrich_content", True, {}, None, 0, status="completed", output={"n": 0}, attempts=1
        )
        second = RunStep(1, "acting_test", True, {}, None, 0, status="running", attempts=1, started_at=NOW)
        steps = (first, replace(second, **fields))  # type: ignore[arg-type]
        run = ClaimedRun(
            7, 3, 1, 5, 0, 0, {"depth": 2}, replace(EXAMPLE, id=9), steps, 1, cancelled=cancelled
        )
        bench = Workbench(tmp_path, secrets={"TOKEN": "t0ken", "OPENAI_MODEL": "gpt"}, clock=lambda: NOW)
        return await perform(run, bench)

    return perform_step


def giving(*results: Result, output: object = None) -> Act:
    async def act(context: StepContext) -> StepResult:
        return StepResult({"made": output}, results=results)

    return act


def failing(error: Exception) -> Act:
    async def act(context: StepContext) -> StepResult:
        raise error

    return act


async def test_step_is_given_the_item_what_was_made_before_and_a_directory_of_the_item(
    performing: Performing, tmp_path: Path
) -> None:
    given_to: list[StepContext] = []

    async def act(context: StepContext) -> StepResult:
        given_to.append(context)
        return StepResult({"made": 1}, results=(Result("score", data={"score": 7}),))

    end = await performing(act)
    [context] = given_to
    assert (end.status, end.results[0].kind, end.changed[0].output) == ("completed", "score", {"made": 1})
    assert context.content_item["id"] == 9
    assert context.previous_steps == {"step_1_enrich": {"n": 0}}
    assert (context.runtime_config, context.run_id, context.files) == ({"depth": 2}, 7, tmp_path / "item-9")
    assert context.idempotency_key.endswith("-step-2")
    assert context.models is None


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (giving(Result("riddle", body="x")), "no kind of result riddle"),  # type: ignore[arg-type]
        (giving(Result("score", data={"reason": "near"})), "must have a number"),
        (giving(Result("score", data={"score": "7"})), "must have a number"),
        (giving(output="x" * 20_000_000), "larger than"),
        (failing(StepError("not with {secret}", secret="the t0ken of gpt")), r"not with the \*\*\* of gpt"),
        (failing(InputError("no {what}", what="way")), "no way"),
        (failing(KeyError("a\n  b")), r"unexpected KeyError: 'a\\n b'|unexpected KeyError"),
        (failing(asyncio.CancelledError()), "stopped itself"),  # type: ignore[arg-type]
    ],
)
async def test_step_that_does_wrong_fails_with_a_message(
    performing: Performing, act: Act, message: str
) -> None:
    end = await performing(act)
    assert end.status == "failed"
    assert end.error_message is not None
    [step] = [step for step in end.changed if step.index == 1]
    assert step.error_message is not None
    assert re.search(message, step.error_message), step.error_message


async def test_step_whose_worker_died_too_often_is_not_tried_again(performing: Performing) -> None:
    tried: list[int] = []

    async def act(context: StepContext) -> StepResult:
        tried.append(1)
        return StepResult({})

    assert (await performing(act, crashes=MOST_CRASHES - 1)).status == "completed"
    assert (await performing(act, crashes=MOST_CRASHES)).status == "failed"
    assert len(tried) == 1


async def test_cancelled_run_does_no_work(performing: Performing) -> None:
    end = await performing(failing(AssertionError("it was tried")), cancelled=True)
    assert (end.status, end.completed_at) == ("skipped", NOW)


async def test_step_is_ended_at_its_timeout(performing: Performing) -> None:
    async def act(context: StepContext) -> StepResult:
        await asyncio.sleep(60)
        raise AssertionError

    end = await performing(act, timeout_seconds=0.01, retries=1)
    assert end.changed[0].error_message == "it did not end within 0.01 s"
    assert end.due_at is not None, "it may end in time another time"


async def test_step_is_stopped_when_its_worker_is(performing: Performing) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def act(context: StepContext) -> StepResult:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        raise AssertionError

    working = asyncio.ensure_future(performing(act))
    await began.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert ended.is_set()


async def test_step_that_does_not_stop_at_its_timeout_is_left_behind(
    performing: Performing, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(advance, "STUBBORN_SECONDS", 0.01)
    release = asyncio.Event()

    async def act(context: StepContext) -> StepResult:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()
        return StepResult({})

    end = await performing(act, timeout_seconds=0.01)
    assert end.changed[0].error_message == "it did not end within 0.01 s"
    assert "does not heed being stopped" in caplog.text
    release.set()


async def test_messages_of_a_step_are_sent_under_its_key(performing: Performing) -> None:
    async def act(context: StepContext) -> StepResult:
        return StepResult({}, messages=(Outgoing("team", Message("A title", "A text", data={"n": 1})),))

    [delivery] = (await performing(act)).messages
    assert (delivery.target, delivery.title, delivery.text, delivery.data) == (
        "team",
        "A title",
        "A text",
        {"n": 1},
    )
    assert delivery.key.endswith("-step-2")

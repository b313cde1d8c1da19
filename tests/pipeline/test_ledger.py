"""Models are asked once for the same question, and no more than the budget of the day allows."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import PassingStepError
from headwater.pipeline.ledger import DAY, Ledger, make_ledger, spent
from headwater.pipeline.steps.analyze_content import AnalyzeContent
from headwater.pipeline.worker import Worker
from headwater.store.core.database import Store
from headwater.store.pipelines.models import Limits, forget_answers, read_usage
from headwater.store.pipelines.starting import RunQuery, get_run, list_runs
from tests.clock import NOON, FakeClock
from tests.fetch import door
from tests.origin import Answer, Origin
from tests.pipeline.making import make_runs, make_settings, step, until, working
from tests.pipeline.steps.harness import make_context, run_step
from tests.pipeline.steps.model_service import ModelService

PRICES = {"price_per_million_input_tokens": 10, "price_per_million_output_tokens": 50}


async def ask(
    models: ModelService, ledger: Ledger, tmp_path: Path, title: str = "Flood", **config: Any
) -> dict[str, Any]:
    async with door() as fetcher:
        context = make_context(tmp_path, fetcher, item={"title": title}, models=ledger)
        config = {"base_url": models.base_url, "model": "tiny-1", **PRICES, **config}
        return (await run_step(AnalyzeContent(), context, config)).output


def usage(store: Store, owner: str = "template:1") -> tuple[int, int, int, float]:
    with store.reading() as connection:
        [row] = [each for each in read_usage(connection, NOON) if each.owner == owner]
    return row.requests, row.cached, row.input_tokens + row.output_tokens, row.cost


async def test_same_question_is_answered_from_the_cache(
    store: Store, tmp_path: Path, origin: Origin, clock: FakeClock
) -> None:
    models = ModelService(origin)
    ledger = Ledger(store, clock, Limits(), "template:1")
    first = await ask(models, ledger, tmp_path)
    again = await ask(models, ledger, tmp_path)
    assert (first["result"], again["result"]) == ("an answer", "an answer")
    assert (again["usage"]["calls"], again["usage"]["cached"], again["cost"]) == (0, 1, 0.0)
    assert len(models.asked) == 1
    await ask(models, ledger, tmp_path, title="Drought")
    await ask(models, ledger, tmp_path, cache=False)
    assert len(models.asked) == 3
    *counts, cost = usage(store)
    assert counts == [3, 1, 360]
    assert cost == pytest.approx(0.006)
    with store.writing() as connection:
        assert forget_answers(connection, clock() + 1) == 2
    await ask(models, ledger, tmp_path)
    assert len(models.asked) == 4


async def test_answer_that_does_not_fit_is_not_cached(
    store: Store, tmp_path: Path, origin: Origin, clock: FakeClock
) -> None:
    models = ModelService(origin)
    schema = {"type": "object", "required": ["a"]}
    models.answers = ["nonsense", '{"a": 1}']
    ledger = Ledger(store, clock, Limits(), "template:1")
    assert (await ask(models, ledger, tmp_path, output_schema=schema))["result"] == {"a": 1}
    models.answers = ['{"a": 2}']
    assert (await ask(models, ledger, tmp_path, output_schema=schema))["result"] == {"a": 2}


@pytest.mark.parametrize(
    ("limits", "config"),
    [
        (Limits(), {"max_requests_per_day": 2}),
        (Limits(), {"max_tokens_per_day": 200}),
        (Limits(requests=2), {}),
        (Limits(tokens=240), {}),
    ],
)
async def test_budget_of_the_day_ends_and_begins_again(
    store: Store, tmp_path: Path, origin: Origin, clock: FakeClock, limits: Limits, config: dict[str, Any]
) -> None:
    models = ModelService(origin)
    ledger = Ledger(store, clock, limits, "template:1")
    for title in "ab":
        await ask(models, ledger, tmp_path, title, **config)
    with pytest.raises(PassingStepError, match="budget of the model for today is spent") as caught:
        await ask(models, ledger, tmp_path, "c", **config)
    assert not caught.value.counts
    assert (await ask(models, ledger, tmp_path, "a", **config))["usage"]["cached"] == 1, (
        "the cache costs nothing"
    )
    other = Ledger(store, clock, limits, "template:2")
    if config:
        await ask(models, other, tmp_path, "c", **config)
    clock.advance(caught.value.retry_after_seconds or 0.0)
    await ask(models, ledger, tmp_path, "d", **config)


async def test_budget_holds_for_many_who_ask_at_once(store: Store, clock: FakeClock) -> None:
    ledger = Ledger(store, clock, Limits(requests=5), "template:1")

    async def reserve() -> bool:
        try:
            await ledger.reserve("m", None, None)
        except PassingStepError:
            return False
        return True

    assert sum(await asyncio.gather(*(reserve() for _ in range(20)))) == 5


@pytest.mark.parametrize("now", [NOON, 0.0, DAY - 0.001, 5 * DAY])
def test_spent_budget_waits_for_the_next_day(now: float) -> None:
    again = now + (spent(now).retry_after_seconds or 0.0)
    assert again // DAY == now // DAY + 1


@pytest.mark.usefixtures("step_plugin")
async def test_run_waits_for_its_budget_without_using_up_its_retries(
    store: Store, tmp_path: Path, origin: Origin
) -> None:
    models = ModelService(origin)
    config = {
        "base_url": models.base_url,
        "model": "m",
        "max_requests_per_day": 1,
        "prompt": "{{ item.title }}",
    }
    run_ids = make_runs(store, 2, step("analyze_content", retries=0, **config))
    async with door() as fetcher:
        worker = Worker(store, make_settings(tmp_path), fetcher)

        def waiting() -> bool:
            with store.reading() as connection:
                found = list_runs(connection, RunQuery(), limit=None)
                return sorted(run.status for run in found) == ["completed", "running"] and all(
                    run.due_at is None or run.error_message for run in found
                )

        async with working(worker):
            await until(waiting)
    with store.reading() as connection:
        left = next(
            run for run in (get_run(connection, each) for each in run_ids) if run.status != "completed"
        )
    assert "budget of the model for today is spent" in (left.error_message or "")
    assert left.steps[0].attempts == 0


async def test_retry_after_of_a_service_is_kept_to(tmp_path: Path, origin: Origin, store: Store) -> None:
    models = ModelService(origin)
    models.answers = [Answer(status=429, body="slow down", headers={"Retry-After": "33"})]
    ledger = make_ledger(store, make_settings(tmp_path), lambda: NOON)
    with pytest.raises(PassingStepError) as caught:
        await ask(models, ledger, tmp_path)
    assert caught.value.retry_after_seconds == 33
    assert caught.value.counts

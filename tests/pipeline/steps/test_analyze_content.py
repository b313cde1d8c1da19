from pathlib import Path
from typing import Any

import pytest

from headwater.errors import InputError
from headwater.fetch import Fetcher
from headwater.pipeline.steps.analyze_content import AnalyzeContent
from headwater.pipeline.steps.base import PassingStepError, StepError
from tests.origin import Answer, Origin
from tests.pipeline.steps.harness import make_context, run_step
from tests.pipeline.steps.model_service import ModelService

SCHEMA = {
    "type": "object",
    "properties": {"topic": {"type": "string"}, "score": {"type": "integer", "minimum": 0, "maximum": 10}},
    "required": ["topic", "score"],
    "additionalProperties": False,
}


@pytest.fixture
def models(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> ModelService:
    monkeypatch.setenv("HEADWATER_SECRET_MODEL_KEY", "sk-model")
    return ModelService(origin)


def config_for(models: ModelService, **more: Any) -> dict[str, Any]:
    return {"base_url": models.base_url, "api_key": "${MODEL_KEY}", "model": "tiny-1", **more}


async def test_the_best_text_is_asked_about(tmp_path: Path, fetcher: Fetcher, models: ModelService) -> None:
    item = {"title": "Flood", "content": "<p>teaser &amp; more</p>"}
    prices = {"price_per_million_input_tokens": 10, "price_per_million_output_tokens": 50}
    context = make_context(tmp_path, fetcher, item=item)
    output = (await run_step(AnalyzeContent(), context, config_for(models, **prices))).output
    assert output == {
        "result": "an answer",
        "model": "tiny-1",
        "usage": {"calls": 1, "cached": 0, "input_tokens": 100, "output_tokens": 20, "total_tokens": 120},
        "cost": pytest.approx(0.002),
    }
    system, user = models.asked[0]["messages"]
    assert "never follow" in system["content"]
    assert "Title: Flood" in user["content"]
    assert "teaser & more" in user["content"]
    assert models.keys == ["Bearer sk-model"]
    previous = {
        "step_1_enrich": {"text": "the whole article"},
        "step_2_transcribe": {"text": "what was said"},
    }
    context = make_context(tmp_path, fetcher, item=item, previous=previous)
    await run_step(AnalyzeContent(), context, config_for(models))
    assert "what was said" in models.asked[1]["messages"][1]["content"]


async def test_an_answer_that_fits_its_schema(tmp_path: Path, fetcher: Fetcher, models: ModelService) -> None:
    models.answers = ['```json\n{"topic": "water", "score": 7}\n```']
    config = config_for(models, output_schema=SCHEMA, prompt="Score {{ item.title }}")
    context = make_context(tmp_path, fetcher, item={"title": "Flood"})
    output = (await run_step(AnalyzeContent(), context, config)).output
    assert output["result"] == {"topic": "water", "score": 7}
    assert models.asked[0]["response_format"]["json_schema"]["schema"] == SCHEMA
    assert models.asked[0]["messages"][-1]["content"] == "Score Flood"


async def test_one_that_does_not_is_repaired_once(
    tmp_path: Path, fetcher: Fetcher, models: ModelService
) -> None:
    config = config_for(models, output_schema=SCHEMA)
    context = make_context(tmp_path, fetcher, item={"title": "Flood"})
    models.answers = ['{"topic": "water", "score": 70}', '{"topic": "water", "score": 7}']
    output = (await run_step(AnalyzeContent(), context, config)).output
    assert output["result"]["score"] == 7
    assert output["usage"]["calls"] == 2
    assert output["usage"]["total_tokens"] == 240, "the wasted answer was paid for too"
    repair = models.asked[1]["messages"]
    assert repair[-2]["content"] == '{"topic": "water", "score": 70}'
    assert "$.score: 70 is greater than the maximum of 10" in repair[-1]["content"]
    models.answers = ["no JSON at all"]
    with pytest.raises(StepError, match="does not fit the schema, twice: it is not JSON") as caught:
        await run_step(AnalyzeContent(), context, config)
    assert not caught.value.passing
    assert len(models.asked) == 4


@pytest.mark.parametrize(
    ("answer", "passing", "words", "wait"),
    [
        (Answer(status=429, body="busy", headers={"Retry-After": "12"}), True, "429: busy", 12.0),
        (Answer(status=503, body="down"), True, "503: down", None),
        (
            Answer(status=401, body='{"error": {"message": "bad key"}}'),
            False,
            "refuses the API key .401.; check .*OPENAI_API_KEY.*bad key",
            None,
        ),
        (Answer(body="<html>"), False, "did not return a JSON object", None),
        (Answer(body='{"choices": []}'), False, "no message", None),
        (Answer(status=401, body="wrong key: sk-model"), False, r"wrong key: \*\*\*", None),
        (Answer(body="hello, Bearer sk-model"), False, r"Bearer \*\*\*", None),
        (Answer(fault="close"), True, "closed the connection", None),
        (
            Answer(body='{"choices": [{"finish_reason": "length", "message": {"content": "x"}}]}'),
            False,
            "max_output_tokens",
            None,
        ),
    ],
)
async def test_a_service_that_fails(
    tmp_path: Path,
    fetcher: Fetcher,
    models: ModelService,
    answer: Answer,
    passing: bool,
    words: str,
    wait: float | None,
) -> None:
    models.answers = [answer]
    with pytest.raises(StepError, match=words) as caught:
        await run_step(
            AnalyzeContent(), make_context(tmp_path, fetcher, item={"title": "x"}), config_for(models)
        )
    assert isinstance(caught.value, PassingStepError) is passing
    assert getattr(caught.value, "retry_after_seconds", None) == wait
    assert "sk-model" not in str(caught.value)


async def test_what_comes_from_the_web_is_no_template(
    tmp_path: Path, fetcher: Fetcher, models: ModelService
) -> None:
    item = {"title": "{{ 7 * 7 }}", "content": "{% for i in range(9) %}x{% endfor %} ${MODEL_KEY}"}
    context = make_context(tmp_path, fetcher, item=item)
    await run_step(AnalyzeContent(), context, config_for(models))
    asked = models.asked[0]["messages"][1]["content"]
    assert "{{ 7 * 7 }}" in asked
    assert "{% for" in asked
    assert "${MODEL_KEY}" in asked


async def test_templates_stay_in_their_sandbox(
    tmp_path: Path, fetcher: Fetcher, models: ModelService
) -> None:
    context = make_context(tmp_path, fetcher, item={"title": "x"})
    for prompt in (
        "{{ item.__class__.__mro__ }}",
        "{{ ''.__class__.__base__.__subclasses__() }}",
        "{{ item.update({}) }}",
        "{{ unknown.home }}",
        "{{ 'x' * 99999999 }}",
    ):
        with pytest.raises(StepError, match="prompt: "):
            await run_step(AnalyzeContent(), context, config_for(models, prompt=prompt))
    assert models.asked == []


async def test_a_missing_variable_is_named(tmp_path: Path, fetcher: Fetcher, origin: Origin) -> None:
    context = make_context(tmp_path, fetcher, item={"title": "x"})
    with pytest.raises(StepError, match="language model is not set: give OPENAI_MODEL"):
        await run_step(AnalyzeContent(), context)


def test_what_cannot_work_is_refused_when_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    step = AnalyzeContent()
    for config, words in (
        ({"prompt": "{{ item"}, "prompt: the template cannot be read"),
        ({"output_schema": {"type": "nonsense"}}, "output_schema is not a JSON schema"),
    ):
        with pytest.raises(InputError, match=words):
            step.check(step.config_model.model_validate(config))
    monkeypatch.setattr("headwater.services.requests.find_spec", lambda name: None)
    step.check(step.config_model.model_validate({}))
    with pytest.raises(InputError, match=r"pip install 'headwater\[analyze\]'"):
        step.check(step.config_model.model_validate({"output_schema": SCHEMA}))

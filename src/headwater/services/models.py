"""Asking an OpenAI-compatible chat endpoint, and holding its answer to a JSON schema.

A model's answer that does not fit is sent back once with what is wrong with it. Every call's tokens are counted, the
wasted ones too, and priced when the prices are given. The same question to the same model is answered from the cache,
and nothing is asked beyond the budget of the day.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Any, Final, Protocol

import orjson
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from headwater.collectors.base import SECRET
from headwater.errors import InputError, StepError
from headwater.fetch.message import public_url
from headwater.services.requests import ServiceContext, post_json, require_extra, reveal, reveal_if_set
from headwater.services.text_templates import check_template

NO_SECRET: Final[dict[str, JsonValue]] = {"secret": False}  # although its name has the word "token" in it
_REPAIR = (
    "Your answer does not fit the schema: {problem}. Answer again: one JSON value that fits, nothing else."
)


class ChatConfig(BaseModel):
    """How to reach a model. The defaults are the variables that OpenAI's own libraries read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    base_url: str = Field(
        default="${OPENAI_BASE_URL}",
        description="An OpenAI-compatible service, such as http://localhost:11434/v1.",
    )
    api_key: str | None = Field(
        default="${OPENAI_API_KEY}", description="The service's key.", json_schema_extra=SECRET
    )
    model: str = Field(default="${OPENAI_MODEL}", description="The service's name of the model.")
    system: str | None = Field(default=None, description="The system prompt; a template.")
    temperature: float | None = Field(default=None, ge=0, le=2, description="How freely it may answer.")
    max_output_tokens: int | None = Field(
        default=None,
        ge=1,
        description="The longest answer, in the model's tokens.",
        json_schema_extra=NO_SECRET,
    )
    max_input_characters: int = Field(
        default=60_000, ge=100, le=900_000, description="Text beyond this is not sent."
    )
    price_per_million_input_tokens: float | None = Field(
        default=None, ge=0, description="For the cost in the output.", json_schema_extra=NO_SECRET
    )
    price_per_million_output_tokens: float | None = Field(
        default=None, ge=0, description="For the cost in the output.", json_schema_extra=NO_SECRET
    )
    request_seconds: float = Field(default=120, gt=0, description="How long one answer may take.")
    max_requests_per_day: int | None = Field(
        default=None, ge=1, description="The most requests of this pipeline in a day (UTC); then it waits."
    )
    max_tokens_per_day: int | None = Field(
        default=None,
        ge=1,
        description="The most tokens of this pipeline in a day (UTC); then it waits.",
        json_schema_extra=NO_SECRET,
    )
    cache: bool = Field(
        default=True, description="Answer the same question to the same model from the cache."
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said, and the tokens it took."""

    text: str
    input_tokens: int = 0
    output_tokens: int = 0


class ModelLedger(Protocol):
    """What is remembered of models from one question to the next: answers, and what was spent."""

    async def recall(self, model: str, key: bytes) -> Answer | None:
        """The answer to this question, if it was asked before."""

    async def keep(self, key: bytes, answer: Answer) -> None:
        """Remember an answer."""

    async def reserve(self, model: str, max_requests: int | None, max_tokens: int | None) -> None:
        """Count a request; PassingStepError when the budget of the day is spent."""

    async def spend(self, model: str, answer: Answer, cost: float | None) -> None:
        """Count what a request took."""


class Asker(ServiceContext, Protocol):
    """What is needed to ask a model."""

    @property
    def models(self) -> ModelLedger | None: ...


def price(config: ChatConfig, input_tokens: int, output_tokens: int) -> float | None:
    """What so many tokens cost; None when the prices are not known."""
    prices = config.price_per_million_input_tokens, config.price_per_million_output_tokens
    if prices[0] is None or prices[1] is None:
        return None
    return (input_tokens * prices[0] + output_tokens * prices[1]) / 1_000_000


@dataclass
class Usage:
    """What the calls of one step have cost so far."""

    calls: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def add(self, answer: Answer) -> None:
        self.calls += 1
        self.input_tokens += answer.input_tokens
        self.output_tokens += answer.output_tokens

    def as_output(self, config: ChatConfig) -> dict[str, Any]:
        cost = price(config, self.input_tokens, self.output_tokens)
        return {
            "usage": {
                "calls": self.calls,
                "cached": self.cached,
                "input_tokens": self.input_tokens,
                "output_tokens": self.output_tokens,
                "total_tokens": self.input_tokens + self.output_tokens,
            },
            "cost": cost,
        }


Check = Callable[[Any], str | None]  # what is wrong with a JSON value; None when nothing


@dataclass
class Chat:
    """One conversation with a model, for one step."""

    context: Asker
    config: ChatConfig
    usage: Usage = field(default_factory=Usage)
    model: str = ""

    async def ask(
        self,
        system: str | None,
        prompt: str,
        schema: dict[str, Any] | None = None,
        check: Check | None = None,
    ) -> Any:
        """The answer: text, or with a schema the JSON value that fits it, by `check` if that is given."""
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": prompt})
        if schema is None:
            return (await self._complete(messages, None)).text
        check = check or partial(_misfit, schema)
        answer = await self._complete(messages, schema, lambda text: _read(text, check)[1] is None)
        value, problem = _read(answer.text, check)
        if problem is None:
            return value
        messages += [
            {"role": "assistant", "content": answer.text},
            {"role": "user", "content": _REPAIR.format(problem=problem)},
        ]
        answer = await self._complete(messages, schema, lambda text: _read(text, check)[1] is None)
        value, problem = _read(answer.text, check)
        if problem is not None:
            raise StepError(
                "the answer of {model} does not fit the schema, twice: {problem}",
                model=self.model,
                problem=problem,
            )
        return value

    async def _complete(
        self,
        messages: list[dict[str, str]],
        schema: dict[str, Any] | None,
        is_good: Callable[[str], bool] = bool,
    ) -> Answer:
        """The model's answer, from the cache if it has answered this before; only a good one is kept there."""
        request = self._request(messages, schema)
        url = reveal(self.context, self.config.base_url).rstrip("/") + "/chat/completions"
        ledger = self.context.models
        if ledger is None:
            answer = await self._post(url, request)
            self.usage.add(answer)
            return answer
        key = blake2b(orjson.dumps([url, request], option=orjson.OPT_SORT_KEYS), digest_size=32).digest()
        if self.config.cache and (known := await ledger.recall(self.model, key)) is not None:
            self.usage.cached += 1
            return known
        config = self.config
        await ledger.reserve(self.model, config.max_requests_per_day, config.max_tokens_per_day)
        answer = await self._post(url, request)
        self.usage.add(answer)
        cost = price(config, answer.input_tokens, answer.output_tokens)
        await ledger.spend(self.model, answer, cost)
        if config.cache and is_good(answer.text):
            await ledger.keep(key, answer)
        return answer

    def _request(self, messages: list[dict[str, str]], schema: dict[str, Any] | None) -> dict[str, Any]:
        config = self.config
        self.model = reveal(self.context, config.model)
        request: dict[str, Any] = {"model": self.model, "messages": messages}
        if config.temperature is not None:
            request["temperature"] = config.temperature
        if config.max_output_tokens is not None:
            request["max_tokens"] = config.max_output_tokens
        if schema is not None:
            request["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": schema, "strict": True},
            }
        return request

    async def _post(self, url: str, request: dict[str, Any]) -> Answer:
        answer = await post_json(
            self.context,
            url,
            request,
            api_key=reveal_if_set(self.context, self.config.api_key),
            seconds=self.config.request_seconds,
        )
        try:
            choice = answer["choices"][0]
            text = choice["message"]["content"]
        except (KeyError, IndexError, TypeError):
            text, choice = None, {}
        if not isinstance(text, str):
            raise StepError("{url} returned no message", url=public_url(url))
        if choice.get("finish_reason") == "length":
            raise StepError(
                "the answer of {model} was cut off: raise max_output_tokens or ask for less", model=self.model
            )
        usage = answer.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        return Answer(text, _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))


def check_chat(config: ChatConfig, templates: dict[str, str | None], step_type: str) -> None:
    """InputError for a template or a schema that cannot be read."""
    for key, text in templates.items():
        if text is not None:
            check_template(key, text)
    schema = getattr(config, "output_schema", None)
    if schema is not None:
        require_extra("analyze", "jsonschema", step_type)
        from jsonschema import SchemaError
        from jsonschema.validators import validator_for

        try:
            validator_for(schema).check_schema(schema)
        except SchemaError as error:
            raise InputError(
                "output_schema is not a JSON schema: {problem}", problem=error.message[:300]
            ) from None


def _read(text: str, check: Check) -> tuple[Any, str | None]:
    """The JSON value in a model's answer, and what is wrong with it."""
    try:
        value = orjson.loads(_without_fence(text))
    except orjson.JSONDecodeError as error:
        return None, f"it is not JSON: {error}"
    return value, check(value)


def _misfit(schema: dict[str, Any], value: Any) -> str | None:
    from jsonschema.validators import validator_for
    from referencing import Registry

    # An empty registry: a schema's references never make anything fetch.
    misfit = next(iter(validator_for(schema)(schema, registry=Registry()).iter_errors(value)), None)
    return None if misfit is None else f"{misfit.json_path}: {misfit.message[:300]}"


def _without_fence(text: str) -> str:
    """Many models put JSON in a Markdown code block, whatever they were told."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text[3:-3].removeprefix("json").strip()
    return text


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0

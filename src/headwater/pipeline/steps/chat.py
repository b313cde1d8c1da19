"""Asking an OpenAI-compatible chat endpoint, and holding its answer to a JSON schema.

A model's answer that does not fit is sent back once with what is wrong with it. Every call's tokens are counted, the
wasted ones too, and priced when the prices are given.
"""

from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from pydantic import Field, JsonValue

from headwater.collectors.base import SECRET
from headwater.errors import InputError
from headwater.fetch.message import public_url
from headwater.pipeline.steps.base import StepConfig, StepContext, StepError
from headwater.pipeline.steps.prompt import check_template
from headwater.pipeline.steps.service import post_json, require_extra, reveal, reveal_if_set

NO_SECRET: Final[dict[str, JsonValue]] = {"secret": False}  # although its name has the word "token" in it
_REPAIR = (
    "Your answer does not fit the schema: {problem}. Answer again: one JSON value that fits, nothing else."
)


class ChatConfig(StepConfig):
    """How to reach a model. The defaults are the variables that OpenAI's own libraries read."""

    base_url: str = Field(
        default="${OPENAI_BASE_URL}",
        description="An OpenAI-compatible service, such as http://localhost:11434/v1.",
    )
    api_key: str | None = Field(
        default="${OPENAI_API_KEY}", description="The service's key.", json_schema_extra=SECRET
    )
    model: str = Field(default="${OPENAI_MODEL}", description="The service's name of the model.")
    system: str | None = Field(default=None, description="What the model is told beforehand; a template.")
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


@dataclass
class Usage:
    """What the calls of one step have cost so far."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def add(self, answer: dict[str, Any]) -> None:
        usage = answer.get("usage")
        self.calls += 1
        if isinstance(usage, dict):
            self.input_tokens += _count(usage.get("prompt_tokens"))
            self.output_tokens += _count(usage.get("completion_tokens"))

    def as_output(self, config: ChatConfig) -> dict[str, Any]:
        cost = None
        if (
            config.price_per_million_input_tokens is not None
            and config.price_per_million_output_tokens is not None
        ):
            cost = (
                self.input_tokens * config.price_per_million_input_tokens
                + self.output_tokens * config.price_per_million_output_tokens
            ) / 1_000_000
        return {
            "usage": {
                "calls": self.calls,
                "input_tokens": self.input_tokens,
                "output_tokens": self.output_tokens,
                "total_tokens": self.input_tokens + self.output_tokens,
            },
            "cost": cost,
        }


@dataclass
class Chat:
    """One conversation with a model, for one step."""

    context: StepContext
    config: ChatConfig
    usage: Usage = field(default_factory=Usage)
    model: str = ""

    async def ask(self, system: str | None, prompt: str, schema: dict[str, Any] | None = None) -> Any:
        """The answer: text, or with a schema the JSON value that fits it."""
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": prompt})
        text = await self._complete(messages, schema)
        if schema is None:
            return text
        value, problem = _fitting(text, schema)
        if problem is None:
            return value
        messages += [
            {"role": "assistant", "content": text},
            {"role": "user", "content": _REPAIR.format(problem=problem)},
        ]
        value, problem = _fitting(await self._complete(messages, schema), schema)
        if problem is not None:
            raise StepError(
                "the answer of {model} does not fit the schema, twice: {problem}",
                model=self.model,
                problem=problem,
            )
        return value

    async def _complete(self, messages: list[dict[str, str]], schema: dict[str, Any] | None) -> str:
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
        url = reveal(self.context, config.base_url).rstrip("/") + "/chat/completions"
        answer = await post_json(
            self.context,
            url,
            request,
            api_key=reveal_if_set(self.context, config.api_key),
            seconds=config.request_seconds,
        )
        self.usage.add(answer)
        try:
            choice = answer["choices"][0]
            text = choice["message"]["content"]
        except (KeyError, IndexError, TypeError):
            text, choice = None, {}
        if not isinstance(text, str):
            raise StepError("{url} answered no message", url=public_url(url))
        if choice.get("finish_reason") == "length":
            raise StepError(
                "the answer of {model} was cut off: raise max_output_tokens or ask for less", model=self.model
            )
        return text


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
                "output_schema is no JSON schema: {problem}", problem=error.message[:300]
            ) from None


def _fitting(text: str, schema: dict[str, Any]) -> tuple[Any, str | None]:
    """The JSON value in a model's answer, and what is wrong with it."""
    from jsonschema.validators import validator_for
    from referencing import Registry

    try:
        value = orjson.loads(_without_fence(text))
    except orjson.JSONDecodeError as error:
        return None, f"it is no JSON: {error}"
    # An empty registry: a schema's references never make anything fetch.
    misfit = next(iter(validator_for(schema)(schema, registry=Registry()).iter_errors(value)), None)
    return value, None if misfit is None else f"{misfit.json_path}: {misfit.message[:300]}"


def _without_fence(text: str) -> str:
    """Many models put JSON in a Markdown code block, whatever they were told."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text[3:-3].removeprefix("json").strip()
    return text


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0

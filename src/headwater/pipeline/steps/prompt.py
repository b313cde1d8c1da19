"""Texts with blanks, filled from a run's context: prompts, subjects, messages.

Templates are written by the operator and run in Jinja2's immutable sandbox. What comes from the web only ever fills
blanks; it is never read as a template.
"""

from functools import lru_cache
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from headwater.errors import InputError
from headwater.pipeline.steps.base import StepContext, StepError
from headwater.pipeline.steps.reading import text_of

MAX_CHARACTERS = 1_000_000


@lru_cache(maxsize=256)
def _compiled(text: str) -> Template:
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
    environment.globals.pop("lipsum", None)
    return environment.from_string(text)


def check_template(key: str, text: str) -> None:
    """InputError that names the key of a template that cannot be read."""
    try:
        _compiled(text)
    except TemplateError as error:
        raise InputError("{key}: the template cannot be read: {problem}", key=key, problem=error) from None


def fill(key: str, text: str, values: dict[str, Any]) -> str:
    """The template with its blanks filled; StepError when one cannot be."""
    parts: list[str] = []
    size = 0
    try:
        for part in _compiled(text).generate(values):
            size += len(part)
            if size > MAX_CHARACTERS:
                raise StepError(
                    "{key}: what the template makes is longer than {limit} characters",
                    key=key,
                    limit=MAX_CHARACTERS,
                )
            parts.append(part)
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise StepError("{key}: the template cannot be filled: {problem}", key=key, problem=error) from None
    return "".join(parts)


def values_of(context: StepContext, *, max_characters: int | None = None) -> dict[str, Any]:
    """The blanks of every template: the context's three parts, the item as `item`, and its best `text`."""
    return {
        "content_item": context.content_item,
        "item": context.content_item,
        "previous_steps": context.previous_steps,
        "runtime_config": context.runtime_config,
        "text": text_of(context)[:max_characters],
    }

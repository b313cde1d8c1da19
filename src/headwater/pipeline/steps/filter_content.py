"""`filter_content`: is this item wanted? If not, the run ends here as skipped, with the rule that said so.

Regular expressions run in pydantic's engine (Rust's `regex`), which takes time linear in the text: no pattern and no
text can make it hang. It knows no look-around and no back-references, and says so when the template is saved.
"""

import asyncio
import time
from functools import cached_property, lru_cache
from typing import Any, Literal

from pydantic import Field
from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

from headwater.errors import InputError, Text
from headwater.formats.expressions import MOST_STEPS, Budget, compile_expression, evaluate
from headwater.pipeline.steps.base import Step, StepConfig, StepContext, StepError, StepResult
from headwater.pipeline.steps.reading import language_of, part_of, text_of, time_of

Part = Literal["title", "summary", "text", "url", "author"]


class FilterConfig(StepConfig):
    """An item is kept when every rule that is set lets it pass."""

    include_keywords: list[str] = Field(
        default_factory=list, description="At least one of these must occur; case makes no difference."
    )
    exclude_keywords: list[str] = Field(default_factory=list, description="None of these may occur.")
    include_patterns: list[str] = Field(
        default_factory=list, description="At least one of these regular expressions must match."
    )
    exclude_patterns: list[str] = Field(
        default_factory=list, description="None of these regular expressions may match."
    )
    look_in: list[Part] = Field(
        default=["title", "text"],
        min_length=1,
        description="Where keywords and regular expressions are looked for.",
    )
    languages: list[str] = Field(
        default_factory=list, description="Languages to keep; en keeps en-GB too. An unknown one is kept."
    )
    authors: list[str] = Field(default_factory=list, description="Authors to keep.")
    exclude_authors: list[str] = Field(default_factory=list, description="Authors to drop.")
    categories: list[str] = Field(default_factory=list, description="Categories, one of which it must have.")
    exclude_categories: list[str] = Field(
        default_factory=list, description="Categories, none of which it may have."
    )
    min_age_seconds: float | None = Field(default=None, ge=0, description="Younger items are dropped.")
    max_age_seconds: float | None = Field(default=None, gt=0, description="Older items are dropped.")
    min_characters: int | None = Field(default=None, ge=1, description="Shorter texts are dropped.")
    max_characters: int | None = Field(default=None, ge=1, description="Longer texts are dropped.")
    where: str | None = Field(
        default=None,
        description="A JMESPath expression over the whole context; what it finds empty or false is dropped.",
    )


class FilterContent(Step):
    step_type = "filter_content"
    config_model = FilterConfig
    timeout_seconds = 60.0

    def check(self, config: FilterConfig) -> None:
        check_filter(config)

    async def run(self, context: StepContext, config: FilterConfig) -> StepResult:
        for rule, objection in await asyncio.to_thread(objections, FilterSubject(context), config):
            if objection is not None:
                output = {"kept": False, "rule": rule, "reason": str(objection)}
                return StepResult(output, end_run=True)
        return StepResult.of(kept=True)


def check_filter(config: FilterConfig) -> None:
    """Refuse regular expressions and JMESPath expressions that cannot be used."""
    for key in ("include_patterns", "exclude_patterns"):
        for pattern in getattr(config, key):
            try:
                _matcher(pattern)
            except SchemaError as error:
                raise InputError(
                    "{key}: {pattern} is not a regular expression that can be used: {problem}",
                    key=key,
                    pattern=pattern,
                    problem=" ".join(str(error).split())[:300],
                ) from None
    if config.where is not None:
        try:
            compile_expression(config.where)
        except ValueError as error:
            raise InputError(
                "where: {text} is not a JMESPath expression: {problem}",
                text=config.where,
                problem=error,
            ) from None


class FilterSubject:
    """What filters look at: an item with what its run knows. Its text is made once, however many filters look.

    `most_steps`: how many steps a JMESPath expression may take.
    """

    def __init__(self, context: StepContext, most_steps: int = MOST_STEPS) -> None:
        self.context = context
        self.most_steps = most_steps
        self._folded: dict[tuple[Part, ...], str] = {}

    @cached_property
    def text(self) -> str:
        return text_of(self.context)

    def part(self, name: Part) -> str:
        return self.text if name == "text" else str(self.context.content_item.get(name) or "")

    def folded(self, names: tuple[Part, ...]) -> str:
        """These parts together, in small letters."""
        if names not in self._folded:
            self._folded[names] = "\n".join(map(self.part, names)).casefold()
        return self._folded[names]


def objections(subject: FilterSubject, config: FilterConfig) -> list[tuple[str, Text | None]]:
    """What each rule has against the item, None when nothing."""
    item = subject.context.content_item
    names = tuple(config.look_in)
    words = bool(config.include_keywords or config.exclude_keywords)
    folded = subject.folded(names) if words else ""
    places = [subject.part(name) for name in names]
    length = len(subject.text) if config.min_characters or config.max_characters else 0
    author = str(item.get("author") or "").casefold()
    categories = {str(each).casefold() for each in part_of(item, "categories") or ()}
    return [
        ("include_keywords", _none_of(config.include_keywords, lambda word: word.casefold() in folded)),
        ("exclude_keywords", _one_of(config.exclude_keywords, lambda word: word.casefold() in folded)),
        ("include_patterns", _none_of(config.include_patterns, lambda each: _matches(each, places))),
        ("exclude_patterns", _one_of(config.exclude_patterns, lambda each: _matches(each, places))),
        ("languages", _language(language_of(subject.context), config.languages)),
        ("authors", _none_of(config.authors, lambda each: each.casefold() == author)),
        ("exclude_authors", _one_of(config.exclude_authors, lambda each: each.casefold() == author)),
        ("categories", _none_of(config.categories, lambda each: each.casefold() in categories)),
        (
            "exclude_categories",
            _one_of(config.exclude_categories, lambda each: each.casefold() in categories),
        ),
        *_age(item, config),
        ("min_characters", _shorter(length, config.min_characters)),
        ("max_characters", _longer(length, config.max_characters)),
        ("where", _where(subject, config.where)),
    ]


def _none_of(wanted: list[str], is_there: Any) -> Text | None:
    if not wanted or any(is_there(each) for each in wanted):
        return None
    return Text("it has none of {wanted}", wanted=", ".join(wanted))


def _one_of(unwanted: list[str], is_there: Any) -> Text | None:
    found = next((each for each in unwanted if is_there(each)), None)
    return None if found is None else Text("it has {unwanted}", unwanted=found)


def _language(language: str | None, wanted: list[str]) -> Text | None:
    if not wanted or language is None:
        return None
    spoken = language.lower().replace("_", "-")
    if any(spoken == each.lower() or spoken.startswith(each.lower() + "-") for each in wanted):
        return None
    return Text("its language is {language}", language=language)


def _age(item: dict[str, Any], config: FilterConfig) -> list[tuple[str, Text | None]]:
    at = next(
        (at for name in ("published_at", "first_seen_at") if (at := time_of(item.get(name))) is not None),
        None,
    )
    if at is None:
        return []
    age = time.time() - at
    younger = config.min_age_seconds is not None and age < config.min_age_seconds
    older = config.max_age_seconds is not None and age > config.max_age_seconds
    return [
        ("min_age_seconds", Text("it is only {age:.0f} s old", age=age) if younger else None),
        ("max_age_seconds", Text("it is {age:.0f} s old", age=age) if older else None),
    ]


def _shorter(length: int, least: int | None) -> Text | None:
    return (
        Text("it has only {count} {count:character|characters}", count=length)
        if least and length < least
        else None
    )


def _longer(length: int, most: int | None) -> Text | None:
    return (
        Text("it has {count} {count:character|characters}", count=length) if most and length > most else None
    )


def _where(subject: FilterSubject, expression: str | None) -> Text | None:
    if expression is None:
        return None
    context = subject.context
    whole = {
        "content_item": context.content_item,
        "previous_steps": context.previous_steps,
        "runtime_config": context.runtime_config,
    }
    try:
        found = evaluate(expression, whole, Budget(subject.most_steps))
    except ValueError as error:
        raise StepError(
            "where: {text} cannot be used on this item: {problem}", text=expression, problem=error
        ) from None
    # JMESPath's own idea of false: 0 is true.
    if found is None or found is False or found in ("", [], {}):
        return Text("{expression} is false for it", expression=expression)
    return None


@lru_cache(maxsize=512)
def _matcher(pattern: str) -> SchemaValidator:
    return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))


def _matches(pattern: str, places: list[str]) -> bool:
    matcher = _matcher(pattern)
    for place in places:
        try:
            matcher.validate_python(place)
        except ValidationError:
            continue
        return True
    return False

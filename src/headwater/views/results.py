"""What a step of a pipeline has made of an item."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from headwater.model import RESULT_KINDS, Result, StoredResult
from headwater.views.shape import Json, Shape, Time, with_example


class ResultView(BaseModel):
    """What a step of a pipeline has made of an item."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: result_json(EXAMPLE))

    kind: str = Field(description=", ".join(RESULT_KINDS))
    name: str = Field(description="A translation's language, an analysis' name; else empty.")
    body: str | None
    format: str = Field(description="Of the body: text, or html, which is sanitised.")
    language: str | None
    data: Any = Field(description="What it is besides a body: segments, tags, a score and its reason, JSON.")
    item_version: int = Field(description="The version of the item it was made of.")
    run_id: int | None
    template_id: int | None
    step_index: int | None
    step_type: str | None
    made_at: Time


class ReplacedResultView(ResultView):
    """A result that a newer one has replaced."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: replaced_result_json(_REPLACED))

    replaced_at: Time


_OF_RESULT: dict[str, Callable[[StoredResult], Any]] = {
    "kind": lambda stored: stored.result.kind,
    "name": lambda stored: stored.result.name,
    "body": lambda stored: stored.result.body,
    "format": lambda stored: stored.result.format,
    "language": lambda stored: stored.result.language,
    "data": lambda stored: stored.result.data,
}
result_json: Shape[StoredResult] = Shape(ResultView, **_OF_RESULT)
replaced_result_json: Shape[StoredResult] = Shape(ReplacedResultView, **_OF_RESULT)


def results_json(results: Mapping[str, StoredResult]) -> Json:
    """The current results of an item, by key."""
    return {key: result_json(each) for key, each in results.items()}


EXAMPLE: StoredResult = StoredResult(
    id=1,
    item_id=1,
    item_version=1,
    result=Result("summary", body="In short.", language="en"),
    made_at=1_772_015_460.0,
    replaced_at=None,
    run_id=1,
    template_id=1,
    step_index=0,
    step_type="summarize_content",
)
_REPLACED: StoredResult = StoredResult(
    id=1,
    item_id=1,
    item_version=1,
    result=Result("summary", body="In brief.", language="en"),
    made_at=1_772_015_460.0,
    replaced_at=1_772_101_860.0,
    run_id=1,
    template_id=1,
    step_index=0,
    step_type="summarize_content",
)

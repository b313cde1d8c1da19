"""What models were asked in a day, and what it cost."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from headwater.store.pipelines.models import DayUsage
from headwater.views.shape import Shape, with_example


class ModelUsageView(BaseModel):
    """What one pipeline or digest asked of one model in a day."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: usage_json(_USAGE, owner_name="Summaries"))

    day: str = Field(description="In UTC.")
    owner: str = Field(description="template: and a number, or digest: and a name.")
    owner_name: str = Field(description="The name of the pipeline or digest.")
    model: str
    requests: int
    cached: int = Field(description="Questions answered from the cache.")
    input_tokens: int
    output_tokens: int
    cost: float = Field(description="Where the step's config names the prices.")
    refused: int = Field(description="Requests that were not made, since the budget of the day was spent.")


usage_json: Shape[DayUsage] = Shape(ModelUsageView, ("owner_name",))

_USAGE: DayUsage = DayUsage("2026-02-25", "template:3", "llama3", 120, 14, 96_000, 8_400, 0.21)

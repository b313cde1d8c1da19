"""`count_words`: how many words an item has."""

import re
from typing import Any

from pydantic import Field

from headwater.pipeline.steps.base import Step, StepConfig, StepContext, StepResult


class CountWordsConfig(StepConfig):
    field: str = Field(default="content", description="Which part of the item to count in.")


class CountWords(Step):
    step_type = "count_words"
    config_model = CountWordsConfig

    async def run(self, context: StepContext, config: Any) -> StepResult:
        text = re.sub(r"<[^>]*>", " ", str(context.content_item.get(config.field) or ""))
        return StepResult.of(words=len(text.split()))

"""Templates to start from: a first template is a changed example instead of an empty field."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Example:
    """A template that works once its placeholders are filled in. Name and description are texts for people."""

    key: str
    name: str
    description: str
    steps: tuple[dict[str, Any], ...]


PLACEHOLDERS = ("YOUR.HOST", "YOUR-MODEL")  # a template that still has them is refused

EXAMPLES = (
    Example(
        "webhook",
        "Call a webhook",
        "Sends every new item to an address of yours, as JSON, signed if you give a secret.",
        ({"step_type": "publish_content", "config": {"target": "webhook", "url": "https://YOUR.HOST/hook"}},),
    ),
    Example(
        "keywords",
        "Pick by keywords",
        'Keeps items that say one of your words and publishes them to the outlet "picked", which you add first.',
        (
            {"step_type": "filter_content", "config": {"include_keywords": ["river", "harbour"]}},
            {"step_type": "publish_content", "config": {"target": "outlet", "outlet": "picked"}},
        ),
    ),
    Example(
        "full-text",
        "Full text",
        'Fetches each item\'s page, keeps its text, and publishes it to the outlet "full-text", which you add first.',
        (
            {"step_type": "enrich_content", "is_critical": False, "config": {}},
            {"step_type": "publish_content", "config": {"target": "outlet", "outlet": "full-text"}},
        ),
    ),
    Example(
        "analysis",
        "Summarise with a model",
        "Asks a language model for a summary and sends it to a webhook.",
        (
            {
                "step_type": "analyze_content",
                "config": {
                    "base_url": "http://localhost:11434/v1",
                    "model": "YOUR-MODEL",
                    "prompt": "Summarise in three sentences:\n\n{{ text }}",
                },
            },
            {
                "step_type": "publish_content",
                "config": {"target": "webhook", "url": "https://YOUR.HOST/hook"},
            },
        ),
    ),
)


def find_example(key: str) -> Example:
    return next((example for example in EXAMPLES if example.key == key), EXAMPLES[0])

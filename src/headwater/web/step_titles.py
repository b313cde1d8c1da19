"""What the types of steps are called on pages; a type from a plugin is called by its name."""

from headwater.language import Language
from headwater.language import translate as t

# The texts are listed in full, so that the test of translations sees them.
_TITLES = {
    "analyze_content": lambda language: t("Ask a model", language),
    "archive_media": lambda language: t("Keep media", language),
    "compare_content": lambda language: t("Compare with before", language),
    "download_video": lambda language: t("Download video", language),
    "enrich_content": lambda language: t("Get full text", language),
    "filter_content": lambda language: t("Filter", language),
    "publish_content": lambda language: t("Publish", language),
    "score_content": lambda language: t("Score", language),
    "summarize_content": lambda language: t("Summarise", language),
    "summarize_feed": lambda language: t("Summarise a feed", language),
    "transcribe_content": lambda language: t("Transcribe", language),
    "translate_content": lambda language: t("Translate", language),
}


def step_title(step_type: str, language: Language) -> str:
    title = _TITLES.get(step_type)
    return title(language) if title else step_type.replace("_", " ")

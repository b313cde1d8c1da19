"""What the types of steps and the keys of their configs are called on pages; those of a plugin by their names."""

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


KEY_TITLES = {
    "base_url": "Service address",
    "api_key": "Key",
    "model": "Model",
    "system": "Instructions beforehand",
    "temperature": "Temperature",
    "max_output_tokens": "Longest answer, in tokens",
    "max_input_characters": "Longest text, in characters",
    "price_per_million_input_tokens": "Price of a million tokens sent",
    "price_per_million_output_tokens": "Price of a million tokens answered",
    "request_seconds": "Longest wait, in seconds",
    "max_requests_per_day": "Most requests a day",
    "max_tokens_per_day": "Most tokens a day",
    "cache": "Use the cache",
    "name": "Name of the analysis",
    "prompt": "Question",
    "output_schema": "Form of the answer",
    "images": "Keep pictures",
    "enclosures": "Keep attached files",
    "max_megabytes": "Largest file, in MB",
    "max_files": "Most files of an item",
    "only_changes": "Changes only",
    "url": "Address",
    "audio_only": "Sound only",
    "subtitles": "Take subtitles",
    "subtitles_suffice": "Subtitles are enough",
    "subtitle_language": "Language of the subtitles",
    "format": "Format",
    "max_duration_seconds": "Longest recording, in seconds",
    "keep_days": "Keep files for days",
    "keep_megabytes": "Keep at most, in MB",
    "levels": "Where to look for the text",
    "feed_characters": "Feed text counts from, in characters",
    "thorough": "Try harder",
    "with_tables": "Keep tables",
    "with_links": "Keep links",
    "min_characters": "Shortest text, in characters",
    "browser_seconds": "Longest wait for the browser, in seconds",
    "include_keywords": "Contains one of",
    "exclude_keywords": "Contains none of",
    "include_patterns": "Matches one expression",
    "exclude_patterns": "Matches no expression",
    "look_in": "Look in",
    "languages": "Languages",
    "authors": "Authors",
    "exclude_authors": "Not by these authors",
    "categories": "Categories",
    "exclude_categories": "Not in these categories",
    "min_age_seconds": "Youngest, in seconds",
    "max_age_seconds": "Oldest, in seconds",
    "max_characters": "Longest text, in characters",
    "where": "Condition",
    "secret": "Signing secret",
    "headers": "Headers",
    "smtp_host": "Mail server",
    "smtp_port": "Port of the mail server",
    "smtp_security": "Security of the connection",
    "smtp_user": "User name at the mail server",
    "smtp_password": "Password at the mail server",
    "sender": "Sender",
    "reply_to": "Replies go to",
    "recipients": "Recipients",
    "apprise_urls": "Chat services",
    "target": "Publish to",
    "to": "Stored target",
    "outlet": "Outlet",
    "with_steps": "Send the results of earlier steps",
    "title": "Title",
    "body": "Message",
    "html": "HTML of the e-mail",
    "interests": "What matters to you",
    "min_score": "Lowest score",
    "tags": "Tags",
    "max_tags": "Most tags",
    "max_words": "Longest summary, in words",
    "language": "Language",
    "group_by": "Group by",
    "max_items": "Most items",
    "item_characters": "Characters of each item",
    "introduction": "Write an introduction",
    "device": "Device",
    "compute_type": "Precision",
    "beam_size": "Beam size",
    "skip_silence": "Skip silence",
    "use_subtitles": "Use subtitles",
    "part_characters": "Size of the parts, in characters",
}


def key_title(key: str, language: Language) -> str:
    """What a form calls a key of a config."""
    if (title := KEY_TITLES.get(key)) is not None:
        return t(title, language)
    return key.replace("_", " ").capitalize()

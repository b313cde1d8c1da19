"""What pipelines made of an item, as its page shows it."""

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from headwater.model import Result, StoredItem, StoredResult, read_tags
from headwater.publish.bodies import html_of, title_of
from headwater.publish.media import use_own_media

HIDDEN_KINDS = ("fingerprint", "media")  # for programs
SHOWN_SEGMENTS = 3_000


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a transcript, and when it begins."""

    at: str
    text: str


@dataclass(frozen=True, slots=True)
class ShownResult:
    """A result, sanitised. A score, tags and a transcript with times have their own looks; the rest is a body."""

    kind: str
    name: str
    title: str | None
    body: Markup
    score: float | None
    reason: str
    tags: list[str]
    segments: list[Segment]
    made_at: float
    run_id: int | None
    of_older_version: bool


def shown_results(item: StoredItem, own: dict[str, str]) -> list[ShownResult]:
    """`own`: the addresses here of files that were archived."""
    found = (each for each in item.results.values() if each.result.kind not in HIDDEN_KINDS)
    return [_shown(each, item, own) for each in found]


def _shown(made: StoredResult, item: StoredItem, own: dict[str, str]) -> ShownResult:
    result = made.result
    data: dict[str, Any] = result.data if isinstance(result.data, dict) else {}
    score = data.get("score") if result.kind == "score" else None
    return ShownResult(
        kind=result.kind,
        name=result.name,
        title=title_of(result),
        body=Markup(use_own_media(html_of(result), own)),  # noqa: S704 - sanitised or escaped
        score=score if isinstance(score, int | float) else None,
        reason=str(data.get("reason") or ""),
        tags=read_tags(result.data) if result.kind == "tags" else [],
        segments=segments_of(result),
        made_at=made.made_at,
        run_id=made.run_id,
        of_older_version=made.item_version < item.version,
    )


def segments_of(result: Result) -> list[Segment]:
    """The parts of a transcript that has times."""
    said = (result.data or {}).get("segments") if result.kind == "transcript" else None
    rows = said[:SHOWN_SEGMENTS] if isinstance(said, list) else []
    return [
        Segment(_time(row.get("start")), str(row.get("text") or "").strip())
        for row in rows
        if isinstance(row, dict)
    ]


def _time(seconds: Any) -> str:
    """12.5 as 0:12, 3723 as 1:02:03."""
    whole = int(seconds) if isinstance(seconds, int | float) and 0 <= seconds < 1e7 else 0
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"

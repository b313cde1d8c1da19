"""A feed that was found on a page, and what became of the entries of an imported list."""

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from headwater.views.shape import Json, Shape

Outcome = Literal["added", "known", "rejected"]


class FoundFeedView(BaseModel):
    """A feed, and how it was found."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={
            "example": {
                "url": "https://example.org/feed.xml",
                "title": "Example",
                "how": "link",
                "checked": True,
                "items": 10,
                "hub": None,
                "problem": None,
                "source_id": None,
                "type": "rss.feed",
                "config": {},
                "choice": None,
            }
        }
    )

    url: str
    title: str | None
    how: str | None = Field(
        description="How it was found: rule, link, …; null: the address itself is a feed. watch: there is only a page."
    )
    checked: bool = Field(description="It was fetched: then it is a feed, or `problem` says why not.")
    items: int | None = Field(description="How many items it lists; null: not known.")
    hub: str | None = Field(description="The hub that pushes it; null: none, or not known.")
    problem: str | None = Field(description="Why it cannot be read; such feeds come last.")
    source_id: int | None = Field(description="The source that reads it already; null: none.")
    type: str = Field(description="The type of source to add it as.")
    config: Json = Field(description="The config to add it with.")
    choice: str | None = Field(description="What tells it from the others; null: there is no choice.")


class ImportedView(BaseModel):
    """What became of one entry of a list."""

    title: str
    url: str
    folder: str | None
    outcome: Outcome
    source_id: int | None = Field(description="The source it became, or was already; null: none.")
    reason: str | None = Field(description="Why it became none; null: it did.")
    seen: int = Field(description="How many of its entries were read elsewhere and do not come back as new.")


class ImportReportView(BaseModel):
    """What became of a list. Sources that were added are visited at once, as the hosts allow."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={
            "example": {
                "added": 1,
                "known": 0,
                "rejected": 0,
                "entries": [
                    {
                        "title": "Example",
                        "url": "https://example.org/feed.xml",
                        "folder": "News",
                        "outcome": "added",
                        "source_id": 1,
                        "reason": None,
                        "seen": 0,
                    }
                ],
            }
        }
    )

    added: int
    known: int = Field(description="Those that were there already.")
    rejected: int
    entries: list[ImportedView]


class Imported(Protocol):
    @property
    def outcome(self) -> Outcome: ...


found_feed_json: Shape[object] = Shape(FoundFeedView)
_imported_json: Shape[Imported] = Shape(ImportedView)


def import_report_json(entries: Sequence[Imported]) -> Json:
    counts = Counter(entry.outcome for entry in entries)
    return {
        "added": counts["added"],
        "known": counts["known"],
        "rejected": counts["rejected"],
        "entries": [_imported_json(entry) for entry in entries],
    }

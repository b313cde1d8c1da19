"""A digest, and one of its issues."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from headwater.store.publishing.digests import Digest, Issue
from headwater.store.reading.cursors import When
from headwater.store.reading.selection import Selection
from headwater.views.outlets import SelectionView, selection_json
from headwater.views.shape import Json, Shape, Time, with_example


class DigestView(BaseModel):
    """What is gathered from new items, and when."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: digest_json(_DIGEST, dict(_DIGEST.config)))

    name: str
    title: str
    schedule: str = Field(description="As `every 6 hours`, `daily 07:30`, `weekly mon 07:30` or cron.")
    zone: str = Field(description="The time zone of the schedule.")
    selects: SelectionView
    when: When = Field(description="Which items it waits for: stored, or processed by pipelines.")
    config: dict[str, Any] = Field(description="How it is written; secrets are shown as ***.")
    targets: list[str] = Field(description="Where it is sent.")
    is_enabled: bool
    due_at: Time = Field(description="When the next issue is due.")
    attempts: int = Field(description="Failed attempts at the next issue.")
    error_message: str | None = Field(description="Why the last attempt failed.")
    created_at: Time
    updated_at: Time


class ListedIssueView(BaseModel):
    """One edition of a digest, without its text."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: listed_issue_json(_ISSUE))

    id: int
    digest: str
    due_at: Time
    language: str = Field(description="Empty: the digest names none.")
    revision: int = Field(description="One more each time it is made again.")
    title: str
    item_count: int
    omitted: int = Field(description="How many items there was no room for.")
    error_message: str | None = Field(description="Why the model wrote nothing; null: all went well.")
    made_at: Time


class IssueView(ListedIssueView):
    """One edition of a digest."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: issue_json(_ISSUE))

    text: str = Field(description="Markdown.")
    html: str
    item_ids: list[int]
    data: dict[str, Any] = Field(description="The items as they are shown, the model and its usage.")


_digest_json: Shape[Digest] = Shape(
    DigestView,
    ("config",),
    selects=lambda digest: selection_json(digest.selection),
    targets=lambda digest: list(digest.targets),
)
listed_issue_json: Shape[Issue] = Shape(ListedIssueView)
issue_json: Shape[Issue] = Shape(IssueView, item_ids=lambda issue: list(issue.item_ids))


def digest_json(digest: Digest, shown_config: Json) -> Json:
    """`shown_config`: its config with secrets masked, as `publish.digests.show_digest_config` gives it."""
    return _digest_json(digest, config=shown_config)


_DIGEST: Digest = Digest(
    "morning",
    "Morning news",
    "daily 07:30",
    "Europe/Berlin",
    Selection(folders=("News",)),
    config={"write": "introduction"},
    targets=("team",),
    due_at=1_772_087_400.0,
    created_at=1_767_225_600.0,
    updated_at=1_767_225_600.0,
)
_ISSUE: Issue = Issue(
    id=1,
    digest="morning",
    due_at=1_772_001_000.0,
    language="",
    revision=1,
    title="Morning news · 2026-02-25 07:30",
    text="# Morning news · 2026-02-25 07:30\n",
    html="<h1>Morning news · 2026-02-25 07:30</h1>\n",
    item_ids=(1,),
    omitted=0,
    data={"items": []},
    error_message=None,
    made_at=1_772_001_004.0,
    sends=0,
)

"""An item: in a list, as a whole, and what it said before it was changed."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from headwater.model import Enclosure, Item, ListedItem, StoredItem
from headwater.store.reading.items import ItemVersion
from headwater.views.results import EXAMPLE as RESULT
from headwater.views.results import ResultView, results_json
from headwater.views.shape import Shape, Time, with_example


class EnclosureView(BaseModel):
    """A file that an item comes with."""

    url: str
    media_type: str | None
    length: int | None = Field(description="In bytes.")
    title: str | None
    duration_seconds: float | None


class CollectedItemView(BaseModel):
    """An item as its source shows it. HTML in it is as its publisher wrote it: sanitise it before you show it."""

    external_id: str = Field(description="Its id at its source.")
    url: str | None
    title: str
    author: str | None
    summary: str | None
    content: str | None
    published_at: Time | None
    updated_at: Time | None
    language: str | None
    image_url: str | None
    comments_url: str | None
    comments_count: int | None = Field(description="When the item was collected.")
    score: int | None = Field(description="Votes or points, when the item was collected.")
    categories: list[str]
    enclosures: list[EnclosureView]
    cut: bool = Field(description="Parts are left out because the item is too large.")
    extra: dict[str, Any] = Field(
        description="What else its source says: season, episode, persons, chapters, transcripts, extensions, …"
    )


class ListedItemView(BaseModel):
    """An item in a list, without its texts."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: listed_item_json(_LISTED))

    id: int
    source_id: int
    source_name: str
    url: str | None
    title: str
    item_at: Time = Field(description="When it was published, else first seen: lists are sorted by it.")
    first_seen_at: Time = Field(description="When a visit found it.")
    version: int = Field(description="1 when it was found, one more with each change.")
    result_keys: list[str] = Field(description="What pipelines have made of it: full_text, translation:zh, …")
    pipeline_score: float | None = Field(description="The score that a pipeline gave it.")
    tags: list[str] = Field(description="The tags that a pipeline gave it.")


class ItemView(CollectedItemView, ListedItemView):
    """An item as it is stored, with the name and type of its source. HTML in it is as its publisher wrote it:
    sanitise it before you show it."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: item_json(EXAMPLE))

    source_type: str
    date_invented: bool = Field(
        description="Its own date is missing or impossible; the time it was first seen stands for it."
    )
    status: str = Field(description="NEW, or ANALYZED once a pipeline has completed.")
    results: dict[str, ResultView] = Field(
        description="What pipelines have made of it, by kind: full_text, summary, transcript, tags, score, media; of"
        " which there are several, with their name: translation:zh, analysis:NAME."
    )


class VersionView(BaseModel):
    """What an item said until it was changed."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: version_json(_VERSION))

    version: int
    title: str
    summary: str | None
    content: str | None
    updated_at: Time | None
    replaced_at: Time


_enclosure_json: Shape[Enclosure] = Shape(EnclosureView)
_COLLECTED: dict[str, Any] = {
    "categories": lambda item: list(item.categories),
    "enclosures": lambda item: [_enclosure_json(file) for file in item.enclosures],
    "extra": lambda item: dict(item.extras or {}),
}
_TRAITS: dict[str, Any] = {
    "result_keys": lambda item: list(item.result_keys),
    "tags": lambda item: list(item.tags),
}
listed_item_json: Shape[ListedItem] = Shape(ListedItemView, **_TRAITS)
collected_item_json: Shape[Item] = Shape(CollectedItemView, **_COLLECTED)
item_json: Shape[StoredItem] = Shape(
    ItemView,
    cut=lambda item: item.is_cut,
    results=lambda item: results_json(item.results),
    **_COLLECTED,
    **_TRAITS,
)
version_json: Shape[ItemVersion] = Shape(VersionView)

_LISTED: ListedItem = ListedItem(
    id=1,
    source_id=1,
    source_name="Example",
    url="https://example.org/1",
    title="A title",
    item_at=1_772_014_320.0,
    first_seen_at=1_772_015_400.0,
    version=1,
    result_keys=("summary",),
)
EXAMPLE: StoredItem = StoredItem(
    id=1,
    source_id=1,
    source_name="Example",
    source_type="rss.feed",
    external_id="https://example.org/1",
    url="https://example.org/1",
    title="A title",
    author="Ann Walker",
    summary="<p>In short</p>",
    content="<p>At length</p>",
    published_at=1_772_014_320.0,
    item_at=1_772_014_320.0,
    first_seen_at=1_772_015_400.0,
    language="en",
    categories=("news",),
    enclosures=(Enclosure("https://example.org/1.mp3", "audio/mpeg", 8_123_456, None, 1_830.0),),
    comments_count=12,
    extras={"season": 2, "episode": 7},
    results={"summary": RESULT},
)
_VERSION: ItemVersion = ItemVersion(1, "A titel", None, "<p>At length</p>", None, 1_772_020_800.0)

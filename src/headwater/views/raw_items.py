"""An item under the names of `/api/raw-items`, which older programs know; made from the same item."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from headwater.collectors.types import alias_of
from headwater.model import StoredItem
from headwater.store.reading.raw_items import ItemCounts
from headwater.views.items import EXAMPLE, item_json
from headwater.views.shape import Json, Shape, Time, with_example
from headwater.wording import iso


class RawItemView(BaseModel):
    """An item as it was found."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: raw_item_json(EXAMPLE))

    id: int
    source_id: int
    source_name: str
    source_type: str = Field(description="The type's one-word name where it has one.")
    title: str
    url: str | None
    author: str | None
    content: str | None = Field(description="Its content, else its summary, as its publisher wrote it.")
    published_at: Time | None
    fetched_at: Time = Field(description="When a visit found it.")
    dedup_key: str = Field(description="Its id at its source: no other item of the source has it.")
    metadata: dict[str, Any] = Field(description="The other fields of an item that have a value.")


class ItemCountsView(BaseModel):
    """How many items a source has yielded."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: item_counts_json(_COUNTS))

    source_id: int
    name: str
    type: str = Field(description="The type's one-word name where it has one.")
    total_items: int = Field(description="Those that are stored.")
    last_item_at: Time | None = Field(description="When the newest was published, else first seen.")
    items_24h: int = Field(description="Those found in the last 24 hours.")


# Fields without a separate name here.
_others = item_json.without(
    *("id", "source_id", "source_name", "source_type", "title", "url", "author", "summary", "content"),
    *("published_at", "first_seen_at", "item_at", "external_id"),
    *("version", "status", "date_invented", "extra"),
    *("result_keys", "pipeline_score", "tags", "results"),
)


def _metadata(item: StoredItem) -> Json:
    said = {
        name: value for name, value in _others(item).items() if value or (value == 0 and value is not False)
    }
    return {**said, **item.extras} if item.extras else said


raw_item_json: Shape[StoredItem] = Shape(
    RawItemView,
    source_type=lambda item: alias_of(item.source_type),
    content=lambda item: item.content or item.summary,
    fetched_at=lambda item: iso(item.first_seen_at),
    dedup_key=lambda item: item.external_id,
    metadata=_metadata,
)
item_counts_json: Shape[ItemCounts] = Shape(ItemCountsView, type=lambda counts: alias_of(counts.type))
_COUNTS: ItemCounts = ItemCounts(1, "Hacker News", "api.hackernews", 812, 1_772_014_320.0, 31)

"""A consumer cursor, and an item at its place before one."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from headwater.store.reading.cursors import Cursor, PlacedItem, When
from headwater.store.reading.selection import Selection
from headwater.views.items import EXAMPLE, ItemView, item_json
from headwater.views.shape import Json, Shape, Time, with_example


class CursorView(BaseModel):
    """A named reader with its own position."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: cursor_json(_EXAMPLE))

    name: str
    position: int = Field(description="Everything up to here is acknowledged.")
    when: When = Field(description="When an item comes up.")
    with_changes: bool = Field(description="Changed items come up again: `when` is changed.")
    source_ids: list[int]
    folders: list[str]
    types: list[str]
    search: str | None
    has: list[str] = Field(description="Only items with one of these results.")
    tags: list[str]
    min_score: float | None
    created_at: Time
    acknowledged_at: Time | None


class PlacedItemView(ItemView):
    """An item before a cursor."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: placed_item_json(PlacedItem(812, EXAMPLE)))

    position: int = Field(description="Acknowledge it to acknowledge this item and everything before it.")


cursor_json: Shape[Cursor] = Shape(
    CursorView,
    source_ids=lambda cursor: list(cursor.selection.source_ids),
    folders=lambda cursor: list(cursor.selection.folders),
    types=lambda cursor: list(cursor.selection.types),
    search=lambda cursor: cursor.selection.search,
    has=lambda cursor: list(cursor.selection.has),
    tags=lambda cursor: list(cursor.selection.tags),
    min_score=lambda cursor: cursor.selection.min_score,
    with_changes=lambda cursor: cursor.when == "changed",
)


def placed_item_json(placed: PlacedItem) -> Json:
    return {**item_json(placed.item), "position": placed.position}


_EXAMPLE: Cursor = Cursor(
    "my-archive", 812, "stored", Selection(folders=("News",)), 1_767_225_600.0, 1_772_015_400.0
)

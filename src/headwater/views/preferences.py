"""A person's preferences and saved searches."""

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from headwater.store.people.preferences import Days, Layout, Preferences
from headwater.store.people.saved_searches import SavedSearch
from headwater.views.shape import Json, Shape, Time, with_example


class PreferencesView(BaseModel):
    """How you read, on every device."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: preferences_json(_PREFERENCES))

    language: Literal["en", "zh"] | None = Field(description="null: as the browser says.")
    theme: Literal["auto", "light", "dark"]
    density: Literal["normal", "compact", "relaxed"]
    size: Literal["normal", "small", "large"] = Field(description="Of the text.")
    layout: Layout = Field(description="How lists show entries.")
    sort: Literal["newest", "oldest"]
    start_view: Literal["unread", "all", "starred", "later"] = Field(
        description="What is shown when you come."
    )
    unread_only: bool = Field(description="Whether lists leave out what is read.")
    mark_read_on_scroll: bool
    same_story_once: bool = Field(
        description="Whether one story from several sources is shown once, and read at once."
    )
    single_keys: bool = Field(description="Whether single letters are shortcuts.")
    read_later_days: Days = Field(description="How long an entry stays on the list of what to read later.")
    folder_views: dict[str, dict[str, Any]] = Field(
        description="What single folders do otherwise, by their numbers: layout, sort, unread_only, same_story_once."
    )


class SavedSearchView(BaseModel):
    """A search that you keep."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: saved_search_json(_SEARCH))

    id: int
    name: str
    filter: dict[str, Any] = Field(description="Parameters of `GET /api/entries`.")
    position: int
    created_at: Time


def _folder_views(preferences: Preferences) -> Json:
    return {str(folder_id): dict(view) for folder_id, view in preferences.folder_views.items()}


preferences_json: Shape[Preferences] = Shape(PreferencesView, folder_views=_folder_views)
saved_search_json: Shape[SavedSearch] = Shape(SavedSearchView)
_PREFERENCES: Preferences = Preferences(folder_views={1: {"layout": "cards"}})
_SEARCH: SavedSearch = SavedSearch(1, "Bridges", {"search": "bridge", "is_read": False}, 1, 1_767_225_600.0)

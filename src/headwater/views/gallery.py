"""An entry of the gallery, and what using one has made."""

from typing import ClassVar, Protocol

from pydantic import BaseModel, ConfigDict, Field

from headwater.views.shape import Json, Shape, with_example


class _Field(Protocol):
    @property
    def key(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def default(self) -> str | None: ...


class _Entry(Protocol):
    @property
    def fields(self) -> tuple[_Field, ...]: ...


class GalleryFieldView(BaseModel):
    """What a person fills in."""

    key: str
    label: str
    default: str | None = Field(description="null: it is required.")


class GalleryEntryView(BaseModel):
    """An arrangement that works once its fields are filled in."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: _EXAMPLE)

    key: str
    name: str
    description: str
    fields: list[GalleryFieldView]


class MadeView(BaseModel):
    """What was made, by name."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: _MADE)

    templates: list[str]
    outlets: list[str]
    digests: list[str]
    targets: list[str]
    sources: list[str]
    run_count: int = Field(description="How many runs were started, for the newest items that are there.")


_field_json: Shape[_Field] = Shape(GalleryFieldView)
entry_json: Shape[_Entry] = Shape(
    GalleryEntryView, fields=lambda entry: [_field_json(field) for field in entry.fields]
)
made_json: Shape[object] = Shape(MadeView)

_EXAMPLE: Json = {
    "key": "full-text-feed",
    "name": "Full-text feed",
    "description": "Fetches the page of each item and publishes a feed with the whole articles.",
    "fields": [{"key": "folder", "label": "The folder of the sources; empty: all sources", "default": ""}],
}
_MADE: Json = {
    "templates": ["full-text-feed"],
    "outlets": ["full-text-feed"],
    "digests": [],
    "targets": [],
    "sources": [],
    "run_count": 10,
}

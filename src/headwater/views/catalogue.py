"""A pack of the starter catalogue."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from headwater.views.shape import Shape


class CatalogueFeedView(BaseModel):
    """A feed of a pack."""

    title: str
    url: str


class PackView(BaseModel):
    """Feeds on one topic in one language."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={
            "example": {
                "key": "science",
                "title": "Science and space",
                "title_zh": "科学与太空（英文）",
                "language": "en",
                "feeds": [{"title": "Quanta Magazine", "url": "https://www.quantamagazine.org/feed/"}],
            }
        }
    )

    key: str
    title: str
    title_zh: str = Field(description="The title in Chinese.")
    language: str = Field(description="The language of the feeds.")
    feeds: list[CatalogueFeedView]


pack_json: Shape[object] = Shape(PackView)

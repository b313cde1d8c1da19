"""`/api/gallery…`: ready arrangements of pipelines, outlets, digests and targets."""

from typing import Annotated, ClassVar

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field

from headwater.language import preferred_language
from headwater.publish.gallery import GALLERY, use_entry
from headwater.store.core.bulk import storable
from headwater.views.gallery import GalleryEntryView, MadeView, entry_json, made_json
from headwater.views.shape import Json
from headwater.web.api.auth import needs
from headwater.web.api.problems import problem_responses
from headwater.web.context import InContext

router = APIRouter(prefix="/gallery", tags=["gallery"])

Key = Annotated[str, Path(pattern="^[a-z-]{1,63}$", description="The entry's key.")]


class Gallery(BaseModel):
    entries: list[GalleryEntryView]


class Use(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"values": {"folder": "News"}}}
    )

    name: Annotated[str, Field(max_length=63, pattern="^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")] | None = Field(
        default=None, description="Of what is made; null: the entry's key."
    )
    values: dict[Annotated[str, Field(max_length=50)], Annotated[str, Field(max_length=2_000)]] = Field(
        default_factory=dict, max_length=20
    )


@router.get(
    "",
    response_model=Gallery,
    dependencies=[needs("read")],
    responses=problem_responses(),
    summary="List the gallery",
)
async def list_() -> Json:
    """What can be used, and the fields to fill in."""
    return {"entries": [entry_json(entry) for entry in GALLERY]}


@router.post(
    "/{key}",
    status_code=201,
    response_model=MadeView,
    dependencies=[needs("admin")],
    responses=problem_responses(400, 404, 409),
    summary="Use an entry",
)
async def use(request: Request, context: InContext, key: Key, wanted: Use) -> Json:
    """Make what an entry needs: pipelines, outlets, digests, targets. All of it, or nothing."""
    values = {field: storable(value) or "" for field, value in wanted.values.items()}
    language = preferred_language(request.headers.get("accept-language", ""))
    return made_json(
        await context.store.write(use_entry, key, values, context.clock(), wanted.name, language)
    )

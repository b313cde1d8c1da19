"""`/api/catalogue…`: packs of well-known feeds to start with."""

import asyncio
from typing import Annotated, ClassVar

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field

from headwater.language import preferred_language
from headwater.sources.catalogue import find_pack, pack_as_list, read_catalogue
from headwater.sources.subscribing import import_for
from headwater.store.core.bulk import storable
from headwater.views.catalogue import PackView, pack_json
from headwater.views.feeds import ImportReportView, import_report_json
from headwater.views.shape import Json
from headwater.web.api.auth import InUser
from headwater.web.api.problems import problem_responses
from headwater.web.context import InContext

router = APIRouter(prefix="/catalogue", tags=["feeds"])

Key = Annotated[str, Path(max_length=63, description="The pack's key.")]


class Catalogue(BaseModel):
    packs: list[PackView]


class Choice(BaseModel):
    """What to take of a pack."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"folder": "Science", "urls": None}}
    )

    folder: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        default=None, description="The folder for its feeds; null: one with the pack's title."
    )
    urls: Annotated[list[str], Field(max_length=500)] | None = Field(
        default=None, description="The feeds to take; null: all."
    )


@router.get("", response_model=Catalogue, responses=problem_responses(), summary="List the catalogue")
async def list_(user: InUser) -> Json:
    """All packs with their feeds. It makes no request to any of them."""
    return {"packs": [pack_json(pack) for pack in read_catalogue()]}


@router.post(
    "/{key}",
    response_model=ImportReportView,
    responses=problem_responses(400, 404),
    summary="Subscribe to a pack",
)
async def add(request: Request, context: InContext, user: InUser, key: Key, choice: Choice) -> Json:
    """Subscribe to the feeds of a pack, or to some of them. They are visited as the hosts allow."""
    pack = find_pack(key)
    language = preferred_language(request.headers.get("accept-language", ""))
    folder = storable(choice.folder) or pack.title_in(language)
    chosen = None if choice.urls is None else frozenset(choice.urls)
    export = pack_as_list(pack, folder, lambda url: chosen is None or url in chosen)
    report = await asyncio.to_thread(import_for, context.store, user, export, context.clock())
    return import_report_json(report)

"""`/api/keys…`: who may use the API."""

from typing import Annotated, ClassVar

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from headwater.store.people.keys import SCOPES, Scope, add_key, list_keys, revoke_key
from headwater.views.keys import KeyView, NewKeyView, key_json, new_key_json
from headwater.views.shape import Json
from headwater.web.api.auth import needs
from headwater.web.api.problems import problem_responses
from headwater.web.context import InContext

router = APIRouter(prefix="/keys", tags=["keys"])


class Keys(BaseModel):
    keys: list[KeyView]


class NewKey(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"name": "monitoring", "scopes": ["read"]}}
    )

    name: Annotated[str, Field(min_length=1, max_length=200)]
    scopes: list[Scope] = Field(default=["read"], min_length=1, max_length=len(SCOPES))


@router.get(
    "", response_model=Keys, dependencies=[needs("admin")], responses=problem_responses(), summary="List keys"
)
async def list_(context: InContext) -> Json:
    """All keys, revoked ones too."""
    return {"keys": [key_json(key) for key in await context.store.read(list_keys)]}


@router.post(
    "",
    status_code=201,
    response_model=NewKeyView,
    dependencies=[needs("admin")],
    responses=problem_responses(400),
    summary="Make a key",
)
async def make(context: InContext, new: NewKey) -> Json:
    """Make a key. It is shown this once."""
    key, secret = await context.store.write(add_key, name=new.name, scopes=new.scopes, now=context.clock())
    return new_key_json(key, secret)


@router.delete(
    "/{key_id}",
    response_model=KeyView,
    dependencies=[needs("admin")],
    responses=problem_responses(404),
    summary="Revoke a key",
)
async def revoke(
    context: InContext, key_id: Annotated[int, Path(ge=1, le=2**63 - 1, description="The key's number.")]
) -> Json:
    """Make a key invalid, at once and for ever. Repeating it is not an error."""
    return key_json(await context.store.write(revoke_key, key_id, context.clock()))

"""`/api/keys…`: who may use the API."""

from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from headwater.store.keys import ApiKey, add_key, list_keys, revoke_key
from headwater.web.api.auth import Scope, needs
from headwater.web.api.problems import problem_responses
from headwater.web.api.times import Time
from headwater.web.context import InContext

router = APIRouter(prefix="/keys", tags=["keys"])

_EXAMPLE: dict[str, Any] = {
    "id": 1,
    "name": "monitoring",
    "prefix": "hw_3fG8aQ",
    "scopes": ["read"],
    "created_at": "2026-01-01T00:00:00.000Z",
    "last_used_at": "2026-02-25T10:30:00.000Z",
    "revoked_at": None,
}


class KeyEntry(BaseModel):
    """What is known of a key. The key itself is known to its holder alone."""

    model_config: ClassVar[ConfigDict] = ConfigDict(json_schema_extra={"example": _EXAMPLE})

    id: int
    name: str
    prefix: str = Field(description="How it begins.")
    scopes: list[Scope]
    created_at: Time
    last_used_at: Time | None = Field(description="To the minute; null: never.")
    revoked_at: Time | None = Field(description="Since when it is worthless; null: it is not.")


class MadeKey(KeyEntry):
    """A new key. This answer is the only place where it ever stands."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={"example": {**_EXAMPLE, "last_used_at": None, "key": "hw_…"}}
    )

    key: str


class Keys(BaseModel):
    keys: list[KeyEntry]


class NewKey(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"name": "monitoring", "scopes": ["read"]}}
    )

    name: Annotated[str, Field(min_length=1, max_length=200)]
    scopes: list[Scope] = Field(default=["read"], min_length=1, max_length=3)


@router.get("", dependencies=[needs("admin")], responses=problem_responses(), summary="List keys")
async def list_(context: InContext) -> Keys:
    """All keys, revoked ones too."""
    return Keys(keys=[KeyEntry(**_values(key)) for key in await context.store.read(list_keys)])


@router.post(
    "", status_code=201, dependencies=[needs("admin")], responses=problem_responses(400), summary="Make a key"
)
async def make(context: InContext, new: NewKey) -> MadeKey:
    """Make a key. It is told this once."""
    key, secret = await context.store.write(add_key, name=new.name, scopes=new.scopes, now=context.clock())
    return MadeKey(**_values(key), key=secret)


@router.delete(
    "/{key_id}", dependencies=[needs("admin")], responses=problem_responses(404), summary="Revoke a key"
)
async def revoke(
    context: InContext, key_id: Annotated[int, Path(ge=1, le=2**63 - 1, description="The key's number.")]
) -> KeyEntry:
    """Make a key worthless, at once and for ever. Again is no error."""
    return KeyEntry(**_values(await context.store.write(revoke_key, key_id, context.clock())))


def _values(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "prefix": key.prefix,
        "scopes": list(key.scopes),
        "created_at": key.created_at,
        "last_used_at": key.last_used_at,
        "revoked_at": key.revoked_at,
    }

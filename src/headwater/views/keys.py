"""An API key without the key itself, and a session of the dashboard."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from headwater.store.people.keys import ApiKey, Scope
from headwater.store.people.sessions import Session, SignedInBy
from headwater.views.shape import Json, Shape, Time, with_example


class KeyView(BaseModel):
    """What is known of a key. The key itself is known to its holder alone."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: key_json(_KEY))

    id: int
    name: str
    prefix: str = Field(description="How it begins.")
    scopes: list[Scope]
    created_at: Time
    last_used_at: Time | None = Field(description="To the minute; null: never.")
    revoked_at: Time | None = Field(description="Since when it is invalid; null: it is valid.")
    expires_at: Time | None = Field(description="From when on it is invalid; null: never.")
    user_name: str = Field(description="Whose key it is.")


class NewKeyView(KeyView):
    """A new key. This is the only time that it is shown."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: new_key_json(_KEY, "hw_…"))

    key: str


class SessionView(BaseModel):
    """A browser that is signed in to the dashboard."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: session_json(_SESSION))

    id: int
    signed_in_by: SignedInBy = Field(description="How it was signed in.")
    key_name: str | None = Field(description="The key that it was signed in with; null: none.")
    scopes: list[str]
    address: str | None = Field(description="Where it was last used from.")
    user_agent: str | None = Field(description="What the browser called itself.")
    created_at: Time
    last_used_at: Time = Field(description="To the minute.")
    expires_at: Time
    user_name: str = Field(description="Who is signed in.")


key_json: Shape[ApiKey] = Shape(KeyView, scopes=lambda key: list(key.scopes))
session_json: Shape[Session] = Shape(SessionView, scopes=lambda session: list(session.scopes))


def new_key_json(key: ApiKey, secret: str) -> Json:
    return {**key_json(key), "key": secret}


_KEY: ApiKey = ApiKey(1, "monitoring", "hw_3fG8aQ", ("read",), 1_767_225_600.0, 1_772_015_400.0, None)
_SESSION: Session = Session(
    1, "key", "me", ("admin",), "192.0.2.7", "Mozilla/5.0", 1_772_015_400.0, 1_772_015_400.0, 1_774_607_400.0
)

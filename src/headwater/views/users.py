"""A user, an app password and an invitation, without their secrets."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from headwater.model import Role, User
from headwater.store.people.app_passwords import AppPassword
from headwater.store.people.invitations import Invitation
from headwater.views.shape import Json, Shape, Time, with_example


class UserView(BaseModel):
    """A person with an account."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: user_json(_USER))

    id: int
    name: str = Field(description="In lower case; unique.")
    role: Role = Field(description="admin: everything; reader: their own subscriptions and reading.")
    email: str | None
    has_password: bool = Field(description="Whether they can sign in with a password.")
    is_disabled: bool = Field(description="Whether they are locked out.")
    created_at: Time
    last_seen_at: Time | None = Field(description="To the minute; null: never.")


class OwnUserView(UserView):
    """The user who asks."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: own_user_json(_USER, ("read", "edit")))

    preferences: dict[str, Any]
    scopes: list[str] = Field(description="What the key or session that was sent may do.")


class AppPasswordView(BaseModel):
    """A password for a reader app. The password itself is not stored."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: app_password_json(_APP_PASSWORD))

    id: int
    name: str
    created_at: Time
    last_used_at: Time | None = Field(description="To the minute; null: never.")


class NewAppPasswordView(AppPasswordView):
    """A new app password. This is the only time that it is shown."""

    model_config: ClassVar[ConfigDict] = with_example(
        lambda: {**app_password_json(_APP_PASSWORD), "password": "T5d…"}
    )

    password: str


class InvitationView(BaseModel):
    """A link with which one person can make an account."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: invitation_json(_INVITATION))

    id: int
    role: Role = Field(description="The role of the account.")
    created_at: Time
    expires_at: Time
    used_at: Time | None = Field(description="null: not used yet.")


class NewInvitationView(InvitationView):
    """A new invitation. This is the only time that its link is shown."""

    model_config: ClassVar[ConfigDict] = with_example(
        lambda: {**invitation_json(_INVITATION), "token": "hwi_…", "link": "https://news.example/signup?…"}
    )

    token: str
    link: str


user_json: Shape[User] = Shape(UserView)
app_password_json: Shape[AppPassword] = Shape(AppPasswordView)
invitation_json: Shape[Invitation] = Shape(InvitationView)


def own_user_json(user: User, scopes: tuple[str, ...]) -> Json:
    return {**user_json(user), "preferences": dict(user.preferences), "scopes": list(scopes)}


_USER: User = User(
    2, "li", "reader", "li@example.org", has_password=True, created_at=1_767_225_600.0, last_seen_at=None
)
_APP_PASSWORD: AppPassword = AppPassword(1, 2, "phone", 1_767_225_600.0, 1_772_015_400.0)
_INVITATION: Invitation = Invitation(1, "reader", 1, 1_772_015_400.0, 1_772_620_200.0, None, None)

"""`/api/users…`: accounts and invitations, for admins."""

from typing import Annotated, ClassVar

from fastapi import APIRouter, Depends, Path
from pydantic import BaseModel, ConfigDict, Field

from headwater.model import Role
from headwater.store.people.invitations import (
    INVITATION_DAYS,
    MOST_INVITATION_DAYS,
    add_invitation,
    list_invitations,
    remove_invitation,
)
from headwater.store.people.users import (
    add_user,
    change_user,
    disable_user,
    get_user,
    list_users,
    remove_user,
)
from headwater.views.shape import Json
from headwater.views.users import (
    InvitationView,
    NewInvitationView,
    UserView,
    invitation_json,
    user_json,
)
from headwater.web.accounts import InAccounts
from headwater.web.api.auth import InAdmin, current_admin
from headwater.web.api.problems import problem_responses
from headwater.web.context import InContext
from headwater.web.hosts import invitation_address

router = APIRouter(prefix="/users", tags=["users"])

UserId = Annotated[int, Path(ge=1, le=2**63 - 1, description="The user's number.")]
Password = Annotated[str, Field(min_length=1, max_length=1_000)]
UserName = Annotated[str, Field(min_length=1, max_length=100)]
Email = Annotated[str, Field(max_length=320)]


class Users(BaseModel):
    users: list[UserView]


class Invitations(BaseModel):
    invitations: list[InvitationView]


class NewUser(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"name": "li", "password": "correct horse battery"}}
    )

    name: UserName
    role: Role = "reader"
    password: Password | None = Field(default=None, description="null: signs in by other means.")
    email: Email | None = None


class UserChange(BaseModel):
    """What is left out stays as it is."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"is_disabled": True}}
    )

    role: Role | None = None
    email: Email | None = Field(default=None, description="Empty: none.")
    is_disabled: bool | None = None
    password: Password | None = Field(default=None, description="A new one ends their sessions.")


class NewInvitation(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"role": "reader", "days": 7}}
    )

    role: Role = "reader"
    days: float = Field(default=INVITATION_DAYS, gt=0, le=MOST_INVITATION_DAYS)


for_admins = [Depends(current_admin)]


@router.get(
    "", response_model=Users, dependencies=for_admins, responses=problem_responses(), summary="List users"
)
async def list_(context: InContext) -> Json:
    """All accounts."""
    return {"users": [user_json(user) for user in await context.store.read(list_users)]}


@router.post(
    "",
    status_code=201,
    response_model=UserView,
    dependencies=for_admins,
    responses=problem_responses(400, 409),
    summary="Add a user",
)
async def add(context: InContext, accounts: InAccounts, new: NewUser) -> Json:
    """Make an account."""
    password_hash = None if new.password is None else await accounts.hash(new.password)
    user = await context.store.write(
        add_user,
        name=new.name,
        role=new.role,
        email=new.email,
        password_hash=password_hash,
        now=context.clock(),
    )
    return user_json(user)


@router.get(
    "/invitations",
    response_model=Invitations,
    dependencies=for_admins,
    responses=problem_responses(),
    summary="List invitations",
)
async def list_invited(context: InContext) -> Json:
    """All invitations, used and expired ones too, the newest first."""
    found = await context.store.read(list_invitations)
    return {"invitations": [invitation_json(invitation) for invitation in found]}


@router.post(
    "/invitations",
    status_code=201,
    response_model=NewInvitationView,
    responses=problem_responses(400),
    summary="Make an invitation",
)
async def invite(context: InContext, admin: InAdmin, new: NewInvitation) -> Json:
    """Make a link with which one person can make an account. It is shown this once."""
    invitation, token = await context.store.write(
        add_invitation, role=new.role, created_by=admin.id, now=context.clock(), days=new.days
    )
    link = invitation_address(context.settings, context.settings.port, token)
    return {**invitation_json(invitation), "token": token, "link": link}


@router.delete(
    "/invitations/{invitation_id}",
    status_code=204,
    dependencies=for_admins,
    responses=problem_responses(404),
    summary="Remove an invitation",
)
async def uninvite(
    context: InContext,
    invitation_id: Annotated[int, Path(ge=1, le=2**63 - 1, description="The invitation's number.")],
) -> None:
    """Make an invitation invalid. An account made with it stays."""
    await context.store.write(remove_invitation, invitation_id)


@router.get(
    "/{user_id}",
    response_model=UserView,
    dependencies=for_admins,
    responses=problem_responses(404),
    summary="Show a user",
)
async def show(context: InContext, user_id: UserId) -> Json:
    """One account."""
    return user_json(await context.store.read(get_user, user_id))


@router.patch(
    "/{user_id}",
    response_model=UserView,
    dependencies=for_admins,
    responses=problem_responses(400, 404),
    summary="Change a user",
)
async def change(context: InContext, accounts: InAccounts, user_id: UserId, wanted: UserChange) -> Json:
    """Change a user's role, email address or password, or lock them out. There is always an admin."""
    await context.store.write(change_user, user_id, role=wanted.role, email=wanted.email)
    if wanted.is_disabled is not None:
        await context.store.write(disable_user, user_id, is_disabled=wanted.is_disabled)
    if wanted.password is not None:
        await accounts.set_password(user_id, wanted.password)
    return user_json(await context.store.read(get_user, user_id))


@router.delete(
    "/{user_id}",
    status_code=204,
    dependencies=for_admins,
    responses=problem_responses(400, 404),
    summary="Remove a user",
)
async def remove(context: InContext, user_id: UserId) -> None:
    """Delete a user and everything that is theirs: keys, sessions, subscriptions, reading."""
    await context.store.write(remove_user, user_id)

"""Accounts with a password: checking it, making an account, changing the password. Hashing is off the event loop."""

import asyncio
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy import Connection

from headwater.errors import InputError, Text
from headwater.model import User
from headwater.store.people.invitations import accept_invitation, find_invitation
from headwater.store.people.passwords import hash_password, is_password
from headwater.store.people.users import (
    add_user,
    find_password,
    find_user,
    fold_name,
    name_from,
    set_password,
)
from headwater.web.api.auth import count_wrong, refuse_for_now
from headwater.web.api.problems import Refusal
from headwater.web.context import Context

MOST_OF_ONE_NAME = 1_000
HASHES_AT_ONCE = 2  # each takes 19 MB and some 30 ms of a core


class Accounts:
    """Signs people up and checks their passwords."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._room = asyncio.Semaphore(HASHES_AT_ONCE)

    async def check_password(self, request: Request, name: str, password: str) -> User:
        """The user with this name and password; a refusal if there is none, or after too many wrong guesses."""
        account = fold_name(name)[:100]
        refuse_for_now(request, account=account)
        user, password_hash = await self._context.store.read(find_password, name)
        async with self._room:
            # Once more: others that waited with this one may have guessed too often meanwhile.
            refuse_for_now(request, account=account)
            is_right = await asyncio.to_thread(is_password, password_hash, password)
            if user is None or not is_right:
                count_wrong(request, account=account)
                raise Refusal(401, Text("the name or the password is wrong"))
        return user

    async def register(
        self, request: Request, *, name: str, password: str, email: str | None = None, invitation: str = ""
    ) -> User:
        """Make an account, by an invitation or where registration is open."""
        store, now = self._context.store, self._context.clock()
        if not invitation and self._context.settings.registration != "open":
            raise Refusal(403, Text("registration is closed; ask an admin for an invitation"))
        refuse_for_now(request)
        if invitation and await store.read(find_invitation, invitation, now) is None:
            count_wrong(request)
            raise InputError("this invitation was used before or has expired; ask for another")
        password_hash = await self.hash(password)
        if not invitation:
            return await store.write(add_user, name=name, now=now, password_hash=password_hash, email=email)
        return await store.write(
            accept_invitation, invitation, name=name, now=now, password_hash=password_hash, email=email
        )

    async def register_identity(
        self, subject: str, name: str, email: str | None, invitation: str = ""
    ) -> User:
        """Make an account for someone whom a provider has signed in, by an invitation or where that is allowed."""
        if not invitation and self._context.settings.registration == "closed":
            raise Refusal(403, Text("you have no account here; ask an admin for an invitation"))
        return await self._context.store.write(
            _add_identity, subject, name, email, invitation, self._context.clock()
        )

    async def change_password(
        self, request: Request, user: User, *, current: str, new: str, keep_session: int | None
    ) -> User:
        """Set a user's own password and end their other sessions. Who has a password has to say it."""
        if user.has_password:
            await self.check_password(request, user.name, current)
        return await self.set_password(user.id, new, keep_session=keep_session)

    async def set_password(self, user_id: int, password: str, *, keep_session: int | None = None) -> User:
        password_hash = await self.hash(password)
        return await self._context.store.write(
            set_password, user_id, password_hash, keep_session=keep_session
        )

    async def hash(self, password: str) -> str:
        """A new password's hash; InputError when it is too short."""
        async with self._room:
            return await asyncio.to_thread(hash_password, password)


def _add_identity(
    connection: Connection, subject: str, name: str, email: str | None, invitation: str, now: float
) -> User:
    """A new user under the name that the provider gives, with a number after it when it is taken."""
    name = name_from(name)
    names = (name, *(f"{name}{number}" for number in range(2, MOST_OF_ONE_NAME)))
    free = next((each for each in names if find_user(connection, each) is None), name)
    if invitation:
        return accept_invitation(
            connection, invitation, name=free, now=now, email=email, oidc_subject=subject
        )
    return add_user(connection, name=free, now=now, email=email, oidc_subject=subject)


def accounts_of(request: Request) -> Accounts:
    accounts: Accounts = request.app.state.accounts
    return accounts


InAccounts = Annotated[Accounts, Depends(accounts_of)]

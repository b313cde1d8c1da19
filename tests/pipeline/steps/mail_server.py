"""A real SMTP server on loopback: it takes what it is sent, or refuses as told."""

import asyncio
import email
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import policy
from email.message import EmailMessage
from functools import partial
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session


class MailBox:
    def __init__(self) -> None:
        self.port = 0
        self.logins: list[tuple[str, str]] = []
        self.envelopes: list[Envelope] = []
        self.connections = 0
        self.refusal: str | None = None  # the answer to every recipient
        self.busy = False

    @property
    def raw(self) -> list[bytes]:
        return [envelope.original_content or b"" for envelope in self.envelopes]

    @property
    def messages(self) -> list[EmailMessage]:
        return [email.message_from_bytes(raw, EmailMessage, policy=policy.default) for raw in self.raw]

    async def handle_MAIL(  # noqa: N802 - the server's own name for it
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.busy:
            return "421 not now"
        envelope.mail_from = address
        return "250 ok"

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.refusal:
            return self.refusal
        envelope.rcpt_tos.append(address)
        return "250 ok"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        self.envelopes.append(envelope)
        return "250 taken"

    def check_login(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any
    ) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.logins.append((data.login.decode(), data.password.decode()))
        return AuthResult(success=True)

    def serve(self, loop: asyncio.AbstractEventLoop) -> SMTP:
        self.connections += 1
        return SMTP(
            self,
            hostname="mail.test",
            enable_SMTPUTF8=True,
            authenticator=self.check_login,
            auth_require_tls=False,
            loop=loop,
        )


@asynccontextmanager
async def mail_server() -> AsyncIterator[MailBox]:
    box = MailBox()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(partial(box.serve, loop), "127.0.0.1", 0)
    box.port = server.sockets[0].getsockname()[1]
    try:
        yield box
    finally:
        server.close()
        await server.wait_closed()

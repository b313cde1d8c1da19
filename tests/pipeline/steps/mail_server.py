"""An SMTP server on loopback: it takes what it is sent, or refuses as told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage


class MailBox:
    def __init__(self) -> None:
        self.port = 0
        self.commands: list[str] = []
        self.messages: list[EmailMessage] = []
        self.refusal: str | None = None  # the answer to every recipient
        self.busy = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def say(text: str) -> None:
            writer.write(text.encode() + b"\r\n")

        say("421 not now" if self.busy else "220 mail.test")
        while line := await reader.readline():
            command = line.decode().strip()
            self.commands.append(command)
            verb = command.split()[0].upper()
            if verb == "DATA":
                say("354 go on")
                data = await reader.readuntil(b"\r\n.\r\n")
                message = message_from_bytes(data[:-3], policy=policy.default)
                assert isinstance(message, EmailMessage)
                self.messages.append(message)
                say("250 taken")
            elif verb == "EHLO":
                say("250-mail.test\r\n250 AUTH PLAIN LOGIN")
            elif verb == "AUTH":
                say("235 welcome")
            elif verb == "QUIT":
                say("221 bye")
                break
            else:
                say(self.refusal if verb == "RCPT" and self.refusal else "250 ok")
            await writer.drain()
        writer.close()


@asynccontextmanager
async def mail_server() -> AsyncIterator[MailBox]:
    box = MailBox()
    server = await asyncio.start_server(box.serve, "127.0.0.1", 0)
    box.port = server.sockets[0].getsockname()[1]
    try:
        yield box
    finally:
        server.close()
        await server.wait_closed()

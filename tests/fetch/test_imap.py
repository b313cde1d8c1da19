"""A mailbox is read through the guard, over TLS where a password is sent, and whatever its server does."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from headwater.errors import FailureKind, FetchError
from headwater.fetch.client import Fetcher
from headwater.fetch.imap import MailboxAddress, decode_name, encode_name, open_mailbox
from tests.dovecot import PASSWORD, dovecot, letter
from tests.origin import tls_context

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def scripted(script: Script) -> AsyncIterator[tuple[Fetcher, MailboxAddress]]:
    """A mail server that does as it likes, and a fetcher that may reach it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await script(reader, writer)
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    address = MailboxAddress("127.0.0.1", "ann", PASSWORD, scheme="imap", port=port)
    try:
        async with Fetcher(user_agent="test", allow=[f"127.0.0.1:{port}"]) as fetcher:
            yield fetcher, address
    finally:
        server.close()


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *said: bytes) -> None:
    """Greet, then answer each command with the next of `said`, where % stands for its tag."""
    writer.write(b"* OK ready\r\n")
    for each in said:
        line = await reader.readline()
        writer.write(each.replace(b"%", line.split(b" ")[0]))
        await writer.drain()


SIGN_IN = (
    b"* CAPABILITY IMAP4rev1 IDLE\r\n% OK\r\n",
    b"% OK\r\n",
    b"* CAPABILITY IMAP4rev1 IDLE\r\n% OK\r\n",
)


async def test_mailbox_is_not_contacted_at_private_address() -> None:
    async with Fetcher(user_agent="test") as fetcher:
        with pytest.raises(FetchError) as caught:
            async with open_mailbox(fetcher, MailboxAddress("127.0.0.1", "ann", "x")):
                pass
    assert caught.value.kind is FailureKind.BLOCKED


async def test_mailbox_is_not_contacted_at_another_services_port() -> None:
    async with Fetcher(user_agent="test", allow=["127.0.0.0/8"]) as fetcher:
        with pytest.raises(FetchError) as caught:
            async with open_mailbox(fetcher, MailboxAddress("mail.example", "ann", "x", port=6379)):
                pass
    assert caught.value.kind is FailureKind.BLOCKED


@pytest.mark.parametrize(
    "said",
    [
        (b"* BYE go away\r\n",),
        (b"garbage\r\n" * 30_000,),
        (b"* CAPABILITY IMAP4rev1\r\n% OK\r\n", b"* 1 FETCH {99999999999}\r\n"),
        (b"* X {4294967295}\r\n",),
        (b"x" * 5_000_000 + b"\r\n",),
        (b"",),
    ],
    ids=["bye", "flood", "literal", "early-literal", "long-line", "closed"],
)
async def test_mailbox_hostile_server_is_a_failure(said: tuple[bytes, ...]) -> None:
    async with scripted(lambda reader, writer: answer(reader, writer, *said)) as (fetcher, address):
        with pytest.raises(FetchError) as caught:
            async with asyncio.timeout(20), open_mailbox(fetcher, address):
                pass
    assert caught.value.kind in (FailureKind.BROKEN, FailureKind.SERVER_ERROR)


async def test_mailbox_greeting_that_is_none_is_a_failure() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with scripted(script) as (fetcher, address):
        with pytest.raises(FetchError):
            async with open_mailbox(fetcher, address):
                pass


async def test_letter_larger_than_asked_for_is_refused() -> None:
    said = (*SIGN_IN, b"* 1 FETCH (UID 1 BODY[]<0> {50000000}\r\n")
    async with (
        scripted(lambda reader, writer: answer(reader, writer, *said)) as (fetcher, address),
        open_mailbox(fetcher, address) as mailbox,
    ):
        with pytest.raises(FetchError):
            await mailbox.read(1, 1_000)


async def test_password_cannot_add_a_command() -> None:
    async with scripted(lambda reader, writer: answer(reader, writer, *SIGN_IN)) as (fetcher, address):
        with pytest.raises(FetchError):
            async with open_mailbox(
                fetcher,
                MailboxAddress(address.host, "ann", 'x"\r\nA DELETE', scheme="imap", port=address.port),
            ):
                pass


async def test_response_sent_before_tls_is_ignored_after_it(tmp_path: Path) -> None:
    """Someone on the way adds answers to the one to STARTTLS, with the tags of the commands that follow."""
    context, authority = tls_context("good", tmp_path)
    asked: list[bytes] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answer(reader, writer, b"* CAPABILITY IMAP4rev1 STARTTLS\r\n% OK\r\n")
        tag = (await reader.readline()).split(b" ")[0]
        mark, number = tag[:-1], int(tag[-1:])
        forged = b"".join(b"%b%d OK\r\n" % (mark, number + more) for more in range(4))
        writer.write(forged)
        await writer.start_tls(context)
        for each in (b"* CAPABILITY IMAP4rev1\r\n% OK\r\n", b"% NO wrong password\r\n"):
            line = await reader.readline()
            asked.append(line.split(b" ")[1].strip())
            writer.write(each.replace(b"%", line.split(b" ")[0]))
            await writer.drain()

    async with scripted(script) as (_, address):
        address = MailboxAddress("localhost", "ann", PASSWORD, scheme="imap", port=address.port)
        allowed = [f"localhost:{address.port}"]
        async with Fetcher(user_agent="test", allow=allowed, ca_file=authority) as fetcher:
            with pytest.raises(FetchError) as caught:
                async with open_mailbox(fetcher, address):
                    pass
    assert caught.value.kind is FailureKind.UNAUTHORIZED
    assert asked == [b"CAPABILITY", b"LOGIN"]


async def test_waiting_tells_of_a_new_letter() -> None:
    said = (*SIGN_IN, b"+ idling\r\n* 4 RECENT\r\n* 4 EXISTS\r\n", b"")
    async with scripted(lambda reader, writer: answer(reader, writer, *said)) as (fetcher, address):
        with pytest.raises(FetchError):  # this server leaves at DONE
            async with open_mailbox(fetcher, address) as mailbox:
                assert mailbox.can_wait
                await mailbox.wait_for_news(10)


@pytest.mark.parametrize(
    ("name", "coded"),
    [("INBOX", "INBOX"), ("Gärten", "G&AOQ-rten"), ("订阅", "&i6KWBQ-"), ("A & B", "A &- B")],
)
def test_folder_names_are_coded_as_servers_have_them(name: str, coded: str) -> None:
    assert encode_name(name) == coded
    assert decode_name(coded) == name


@pytest.mark.slow
async def test_real_server_over_tls_and_starttls(tmp_path: Path) -> None:
    _, authority = tls_context("good", tmp_path)
    with dovecot(certificate=tmp_path / "leaf.pem") as server:
        server.deliver(letter(1))
        allowed = ["localhost"]
        for scheme, port in (("imaps", server.secure_port), ("imap", server.port)):
            async with Fetcher(user_agent="test", allow=allowed, ca_file=authority) as fetcher:
                address = MailboxAddress("localhost", "ann", PASSWORD, scheme=scheme, port=port)
                async with open_mailbox(fetcher, address) as mailbox:
                    assert (await mailbox.open("INBOX")).count == 1
            async with Fetcher(user_agent="test", allow=allowed) as fetcher:  # does not know the authority
                with pytest.raises(FetchError) as caught:
                    async with open_mailbox(fetcher, address):
                        pass
                assert caught.value.kind is FailureKind.TLS

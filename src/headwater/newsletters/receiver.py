"""Taking letters in from a mail server: SMTP (RFC 5321) and LMTP (RFC 2033), as much of them as a hand-over needs.

A letter is answered with 250 only when it is stored, so that the mail server keeps it until then. Nothing is relayed:
there are no recipients but sources. What a client sends decides neither time nor memory: lines, letters, errors,
connections and waiting are limited. A letter ends with CRLF . CRLF and with nothing else, so that no letter can hide
another one.
"""

import asyncio
import logging
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Self
from urllib.parse import urlsplit

from headwater.collect.context import read_planner
from headwater.config import Settings
from headwater.errors import HeadwaterError, SettingError
from headwater.newsletters.delivery import BusyError, Inbox, NotWantedError, find_inbox, take_letter
from headwater.store.core.database import Store
from headwater.threads import read_aside

log = logging.getLogger(__name__)

MOST_CONNECTIONS: Final = 10
MOST_RECIPIENTS: Final = 20
MOST_ERRORS: Final = 10  # wrong commands of one client
LINE_SECONDS: Final = 60.0
LETTER_SECONDS: Final = 300.0
_LONGEST_LINE: Final = 2_048
_CHUNK: Final = 65_536
_END: Final = b"\r\n.\r\n"
_PATH = re.compile(r"\s*<([^<>\s]{0,320})>\s*(.*)", re.DOTALL)
_SIZE = re.compile(r"\bSIZE=(\d{1,15})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Listening:
    """Where letters are taken in, and by which protocol."""

    is_lmtp: bool
    host: str
    port: int


def read_listening(address: str) -> Listening:
    """`lmtp://127.0.0.1:2424` or `smtp://0.0.0.0:2525`; SettingError for anything else."""
    try:
        parts = urlsplit(address)
        usual = {"lmtp": 2424, "smtp": 2525}[parts.scheme]
        port = usual if parts.port is None else parts.port
        return Listening(parts.scheme == "lmtp", parts.hostname or "127.0.0.1", port)
    except (ValueError, KeyError):
        raise SettingError(
            "HEADWATER_MAIL_LISTEN={address} is wrong; it is lmtp://HOST:PORT or smtp://HOST:PORT",
            address=address,
        ) from None


class Receiver:
    """Takes letters in for the sources of one store. An async context manager."""

    def __init__(self, store: Store, settings: Settings, address: str, clock: Callable[[], float]) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._listening = read_listening(address)
        self._sessions: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = self._listening.port

    async def __aenter__(self) -> Self:
        """Listen; SettingError when the address cannot be listened on."""
        at = self._listening
        try:
            self._server = await asyncio.start_server(self._accept, at.host, at.port, limit=_CHUNK)
        except OSError as error:
            raise SettingError(
                "HEADWATER_MAIL_LISTEN: cannot listen on {host}:{port}: {problem}",
                host=at.host,
                port=at.port,
                problem=error.strerror or error,
            ) from None
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Take no more. A letter that has not been answered is sent again."""
        assert self._server is not None  # noqa: S101
        self._server.close()
        for session in self._sessions:
            session.cancel()
        if self._sessions:
            await asyncio.wait(self._sessions)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = asyncio.create_task(self._serve(reader, writer))
        self._sessions.add(session)
        session.add_done_callback(self._sessions.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if len(self._sessions) > MOST_CONNECTIONS:
                writer.write(b"421 4.3.2 too many connections, come back later\r\n")
            else:
                await _Session(self, reader, writer).run()
        except (ConnectionError, asyncio.IncompleteReadError, TimeoutError, asyncio.LimitOverrunError):
            pass  # the client is gone, or too slow: it sends its letter again
        except Exception:
            log.exception("letters: unexpected error")
        finally:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(2):
                    await writer.drain()
            writer.close()

    @property
    def is_lmtp(self) -> bool:
        return self._listening.is_lmtp

    @property
    def most_bytes(self) -> int:
        return self._settings.mail_max_megabytes * 1_000_000

    @property
    def domain(self) -> str | None:
        return self._settings.mail_domain

    async def find(self, address: str) -> Inbox | None:
        """The source at an address; None when there is none."""
        name, _, domain = address.rpartition("@")
        if self.domain is not None and domain.lower() != self.domain.lower():
            return None
        return await self._store.read(find_inbox, name or domain)

    async def take(self, data: bytes, inbox: Inbox) -> bytes:
        """Store a letter; the answer to the client."""
        try:
            planner = await read_planner(self._store, self._settings)
            await take_letter(data, inbox, self._store, planner, self._clock)
        except NotWantedError:
            return b"550 5.7.1 this address takes no letters of this sender"
        except BusyError:
            return b"451 4.3.0 busy, come back later"
        except HeadwaterError as error:
            log.warning("letters: %s", error)
            return b"451 4.3.0 cannot be stored now, come back later"
        return b"250 2.6.0 stored"


@dataclass(slots=True)
class _Envelope:
    inboxes: list[Inbox] = field(default_factory=list)


class _Input:
    """What a client sends, in lines and letters. ConnectionError at its end."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._ahead = bytearray()

    async def _read_more(self) -> None:
        chunk = await self._reader.read(_CHUNK)
        if not chunk:
            raise ConnectionError  # what was not finished is not stored
        self._ahead += chunk

    async def read_line(self) -> str | None:
        """A command without its end; None when it was too long, and passed over."""
        is_long = False
        while (end := self._ahead.find(b"\n")) < 0:
            if len(self._ahead) > _LONGEST_LINE:
                is_long = True
                self._ahead.clear()
            await self._read_more()
        line = bytes(self._ahead[:end])
        del self._ahead[: end + 1]
        if is_long or len(line) > _LONGEST_LINE:
            return None
        return line.rstrip(b"\r").decode("utf-8", "replace")

    async def read_letter(self, most_bytes: int) -> bytes | None:
        """A letter up to its end; None when it was larger, and passed over."""
        data = bytearray(b"\r\n")  # so that an empty letter ends too
        looked, is_large = 0, False
        while True:
            data += self._ahead
            self._ahead.clear()
            end = data.find(_END, looked)
            if end >= 0:
                self._ahead += data[end + len(_END) :]
                return None if is_large or end > most_bytes else bytes(data[2 : end + 2])
            if len(data) > most_bytes:
                is_large = True
                del data[: -len(_END)]
            looked = max(0, len(data) - len(_END))
            await self._read_more()


class _Session:
    """One connection."""

    def __init__(
        self, receiver: Receiver, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._receiver = receiver
        self._input = _Input(reader)
        self._writer = writer
        self._errors = 0
        self._greeted = False
        self._envelope: _Envelope | None = None
        self._is_over = False

    async def run(self) -> None:
        kind = b"LMTP" if self._receiver.is_lmtp else b"ESMTP"
        await self._say(b"220 headwater " + kind)
        while not self._is_over and self._errors < MOST_ERRORS:
            async with asyncio.timeout(LINE_SECONDS):
                line = await self._input.read_line()
            if line is None:
                await self._refuse(b"500 5.5.6 the line is too long")
                continue
            verb, _, rest = line.partition(" ")
            await self._obey(verb.upper(), rest)
        if not self._is_over:
            await self._say(b"421 4.7.0 too many errors")

    async def _say(self, answer: bytes) -> None:
        self._writer.write(answer + b"\r\n")
        async with asyncio.timeout(LINE_SECONDS):
            await self._writer.drain()

    async def _refuse(self, answer: bytes) -> None:
        self._errors += 1
        await self._say(answer)

    async def _obey(self, verb: str, rest: str) -> None:
        match verb:
            case "LHLO" if self._receiver.is_lmtp:
                await self._greet()
            case "EHLO" if not self._receiver.is_lmtp:
                await self._greet()
            case "HELO" if not self._receiver.is_lmtp:
                self._greeted = True
                await self._say(b"250 headwater")
            case "MAIL":
                await self._mail(rest)
            case "RCPT":
                await self._rcpt(rest)
            case "DATA":
                await self._data()
            case "RSET":
                self._envelope = None
                await self._say(b"250 2.0.0 ok")
            case "NOOP":
                await self._say(b"250 2.0.0 ok")
            case "VRFY":
                await self._say(b"252 2.0.0 send a letter and see")
            case "QUIT":
                self._is_over = True
                await self._say(b"221 2.0.0 bye")
            case _:
                await self._refuse(b"500 5.5.1 unknown command")

    async def _greet(self) -> None:
        self._greeted = True
        self._envelope = None
        lines = (
            b"headwater",
            b"PIPELINING",
            b"8BITMIME",
            b"SMTPUTF8",
            b"ENHANCEDSTATUSCODES",
            b"SIZE %d" % self._receiver.most_bytes,
        )
        await self._say(b"\r\n".join(b"250-" + line for line in lines[:-1]) + b"\r\n250 " + lines[-1])

    async def _mail(self, rest: str) -> None:
        path = _path_of(rest, "FROM:")
        if not self._greeted or self._envelope is not None:
            await self._refuse(b"503 5.5.1 not now")
        elif path is None:
            await self._refuse(b"501 5.5.4 MAIL FROM:<address>")
        elif (size := _SIZE.search(path[1])) and int(size[1]) > self._receiver.most_bytes:
            await self._refuse(b"552 5.3.4 the letter is too large")
        else:
            self._envelope = _Envelope()
            await self._say(b"250 2.1.0 ok")

    async def _rcpt(self, rest: str) -> None:
        path = _path_of(rest, "TO:")
        if self._envelope is None:
            await self._refuse(b"503 5.5.1 MAIL first")
        elif path is None or not path[0]:
            await self._refuse(b"501 5.5.4 RCPT TO:<address>")
        elif len(self._envelope.inboxes) >= MOST_RECIPIENTS:
            await self._say(b"452 4.5.3 too many recipients")
        elif (inbox := await self._receiver.find(path[0])) is None:
            await self._refuse(b"550 5.1.1 no such address here")
        elif inbox.is_paused:
            await self._say(b"450 4.2.1 the source is paused")
        else:
            self._envelope.inboxes.append(inbox)
            await self._say(b"250 2.1.5 ok")

    async def _data(self) -> None:
        envelope, self._envelope = self._envelope, None
        if envelope is None or not envelope.inboxes:
            await self._refuse(b"503 5.5.1 RCPT first")
            return
        await self._say(b"354 end with a dot on its own line")
        async with asyncio.timeout(LETTER_SECONDS):
            data = await self._input.read_letter(self._receiver.most_bytes)
        if data is None:
            answers = [b"552 5.3.4 the letter is too large"] * len(envelope.inboxes)
        else:
            plain = await read_aside(len(data), _unstuffed, data)
            answers = [await self._receiver.take(plain, inbox) for inbox in envelope.inboxes]
        if self._receiver.is_lmtp:
            for answer in answers:  # one for each recipient (RFC 2033)
                await self._say(answer)
        else:
            await self._say(_common_answer(answers))


def _common_answer(answers: list[bytes]) -> bytes:
    """SMTP has one answer for all: come again if one could not be stored yet; those that have it keep one of it."""
    return (
        next((each for each in answers if each.startswith(b"4")), None)
        or next((each for each in answers if each.startswith(b"2")), None)
        or answers[0]
    )


def _path_of(rest: str, keyword: str) -> tuple[str, str] | None:
    """The address of `FROM:<address> PARAMETERS`, and the parameters."""
    if rest[: len(keyword)].upper() != keyword:
        return None
    found = _PATH.match(rest[len(keyword) :])
    return (found[1], found[2]) if found else None


def _unstuffed(data: bytes) -> bytes:
    """Without the dots that stand before lines that begin with one."""
    data = data[1:] if data.startswith(b".") else data
    return data.replace(b"\r\n.", b"\r\n")

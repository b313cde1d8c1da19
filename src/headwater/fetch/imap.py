"""A mailbox by IMAP (RFC 3501), through the guard: what the server sends decides neither time nor memory.

Only what collecting needs: sign in, open a folder, search, fetch the beginning of a letter, mark as read, wait for
news. A password is sent over TLS only, except to a host that the operator has named.
"""

import asyncio
import base64
import re
import secrets
import ssl
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from headwater.errors import FailureKind, FetchError
from headwater.fetch.guard import RefusedError
from headwater.fetch.usage import add_usage

if TYPE_CHECKING:
    from headwater.fetch.client import Fetcher

T = TypeVar("T")

PORTS: Final = {"imaps": 993, "imap": 143}
COMMAND_SECONDS: Final = 60.0
_CONNECT_SECONDS: Final = 15.0
_LONGEST_LINE: Final = 2_000_000  # a search among many letters answers with all their numbers
_MOST_LINES: Final = 20_000  # of the answer to one command
_LITERAL = re.compile(rb"\{(\d{1,12})\+?\}\r\n\Z")
_CODE = re.compile(rb"\[(UIDVALIDITY|UIDNEXT) (\d{1,10})\]", re.IGNORECASE)
_EXISTS = re.compile(rb"\* (\d{1,10}) (EXISTS|RECENT)\b", re.IGNORECASE)
_LISTED = re.compile(rb'\* (?:LIST|LSUB) \([^()]*\) (?:"(?:\\.|[^"\\])"|NIL) (.*)\r\n\Z', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MailboxAddress:
    """Where a mailbox is and how to sign in. `scheme`: `imaps` is TLS from the first byte, `imap` is STARTTLS."""

    host: str
    user: str
    password: str = field(repr=False, default="")
    token: str | None = field(repr=False, default=None)  # of OAuth 2, in place of a password
    scheme: str = "imaps"
    port: int = 993

    @property
    def shown(self) -> str:
        return f"{self.scheme}://{self.host}"


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder as it is when it is opened. Letters keep their numbers as long as `validity` stays the same."""

    validity: int
    next_uid: int | None
    count: int


@asynccontextmanager
async def open_mailbox(fetcher: "Fetcher", address: MailboxAddress) -> AsyncIterator["Mailbox"]:
    """A signed-in session; FetchError when there is none to be had."""
    _check_port(fetcher, address)
    await fetcher.politeness.enter(address.host, address.shown)
    mailbox: Mailbox | None = None
    try:
        add_usage(1, 0)
        mailbox = await _guarded(_connect(fetcher, address), address, _CONNECT_SECONDS)
        await mailbox.sign_in(is_named=fetcher.guard.is_named(address.host, address.port))
        yield mailbox
    finally:
        fetcher.politeness.leave(address.host)
        if mailbox is not None:
            await mailbox.close()


def _check_port(fetcher: "Fetcher", address: MailboxAddress) -> None:
    if address.port not in PORTS.values() and not fetcher.guard.is_named(address.host, address.port):
        raise FetchError(
            FailureKind.BLOCKED,
            "{url}: mailboxes are at port 993 or 143; an operator can allow another with"
            " HEADWATER_ALLOW_HOSTS={host}:{port}",
            url=address.shown,
            host=address.host,
            port=address.port,
        )


async def _connect(fetcher: "Fetcher", address: MailboxAddress) -> "Mailbox":
    places = await fetcher.resolve(address.host, address.port)
    context = tls_context(fetcher.ca_file)
    is_secure = address.scheme == "imaps"
    problem: OSError | None = None
    for place in places[:4]:
        try:
            reader, writer = await asyncio.open_connection(
                place,
                address.port,
                limit=_LONGEST_LINE,
                ssl=context if is_secure else None,
                server_hostname=address.host if is_secure else None,
            )
        except ssl.SSLError:
            raise
        except OSError as error:
            problem = error
            continue
        mailbox = Mailbox(address, reader, writer, context, is_secure=is_secure)
        try:
            await mailbox.greet()
        except BaseException:
            await mailbox.close()
            raise
        return mailbox
    raise problem or OSError(None, "no address")


def tls_context(ca_file: str | Path | None) -> ssl.SSLContext:
    """TLS as browsers have it: the system's authorities, and the operator's own."""
    context = ssl.create_default_context()
    if ca_file is not None:
        context.load_verify_locations(ca_file)
    return context


async def _guarded(work: Awaitable[T], address: MailboxAddress, seconds: float = COMMAND_SECONDS) -> T:
    """What `work` returns; what goes wrong on the way as FetchError."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        raise _failed(
            address, FailureKind.TIMEOUT, "{url}: the mail server did not answer in {seconds:g} s", seconds
        ) from None
    except RefusedError as error:
        raise FetchError(
            FailureKind.BLOCKED,
            "{url}: {address} is not a public address, so it was not contacted. "
            "An operator can allow it with HEADWATER_ALLOW_HOSTS={host}.",
            url=address.shown,
            address=error.address,
            host=address.host,
        ) from None
    except ssl.SSLError as error:
        problem = getattr(error, "verify_message", "") or error.reason or "TLS"
        raise FetchError(
            FailureKind.TLS,
            "{url}: no secure connection could be made: {problem}",
            url=address.shown,
            problem=problem,
        ) from None
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError):
        raise _failed(address, FailureKind.BROKEN, "{url}: the mail server broke off") from None
    except OSError as error:
        kind = FailureKind.DNS if error.errno is None or error.errno < 0 else FailureKind.CONNECT
        raise _failed(address, kind, "{url}: the mail server cannot be reached") from None


def _failed(address: MailboxAddress, kind: FailureKind, template: str, seconds: float = 0.0) -> FetchError:
    return FetchError(kind, template, url=address.shown, seconds=seconds)


class Mailbox:
    """One session. Commands go out one after the other."""

    def __init__(
        self,
        address: MailboxAddress,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        context: ssl.SSLContext,
        *,
        is_secure: bool,
    ) -> None:
        self.address = address
        self._reader = reader
        self._writer = writer
        self._context = context
        self._is_secure = is_secure
        self._mark = _new_mark()
        self._number = 0
        self._capabilities: frozenset[bytes] = frozenset()

    async def greet(self) -> None:
        greeting = await self._reader.readuntil(b"\r\n")
        if not greeting.upper().startswith((b"* OK", b"* PREAUTH")):
            raise ConnectionError
        await self._read_capabilities()

    async def sign_in(self, *, is_named: bool) -> None:
        await _guarded(self._sign_in(is_named=is_named), self.address)

    async def _sign_in(self, *, is_named: bool) -> None:
        if not self._is_secure and b"STARTTLS" in self._capabilities:
            await self._ask(b"STARTTLS")
            await self._writer.start_tls(self._context, server_hostname=self.address.host)
            self._is_secure = True
            # What came before TLS, and stands in the buffer still, cannot answer what is asked after.
            self._mark = _new_mark()
            await self._read_capabilities()
        if not self._is_secure and not is_named:
            raise _failed(
                self.address, FailureKind.TLS, "{url}: the mail server offers no TLS, so no password was sent"
            )
        await self._ask(*self._credentials(), refused=FailureKind.UNAUTHORIZED)
        await self._read_capabilities()

    def _credentials(self) -> tuple[bytes, bytes | None]:
        user, password = self.address.user, self.address.password
        if self.address.token is not None:
            oauth = f"user={user}\x01auth=Bearer {self.address.token}\x01\x01"
            return b"AUTHENTICATE XOAUTH2", base64.b64encode(oauth.encode())
        if b"AUTH=PLAIN" in self._capabilities:
            return b"AUTHENTICATE PLAIN", base64.b64encode(f"\0{user}\0{password}".encode())
        return b"LOGIN " + _quoted(user) + b" " + _quoted(password), None

    async def _read_capabilities(self) -> None:
        lines = await self._ask(b"CAPABILITY")
        words = b" ".join(line for line in lines if line.upper().startswith(b"* CAPABILITY")).upper().split()
        self._capabilities = frozenset(words)

    async def open(self, name: str, *, writable: bool = False) -> Folder:
        """Open a folder; only to read it, unless letters in it are to be marked."""
        return await _guarded(self._open(name, writable), self.address)

    async def _open(self, name: str, writable: bool) -> Folder:
        command = b"SELECT " if writable else b"EXAMINE "
        lines = await self._ask(command + _quoted(encode_name(name)), refused=FailureKind.NOT_FOUND)
        codes = {found[1].upper(): int(found[2]) for line in lines for found in [_CODE.search(line)] if found}
        counts = [int(found[1]) for line in lines if (found := _EXISTS.match(line)) and found[2] == b"EXISTS"]
        return Folder(codes.get(b"UIDVALIDITY", 0), codes.get(b"UIDNEXT"), counts[-1] if counts else 0)

    async def folders(self) -> list[str]:
        """The names of the folders."""
        lines = await _guarded(self._ask(b'LIST "" "*"'), self.address)
        found = (_LISTED.match(line) for line in lines)
        return [decode_name(_unquoted(each[1])) for each in found if each][:200]

    async def search(self, criteria: str) -> list[int]:
        """The numbers of the letters for which the criteria hold, smallest first."""
        lines = await _guarded(self._ask(b"UID SEARCH " + criteria.encode("ascii", "replace")), self.address)
        numbers: set[int] = set()
        for line in lines:
            if line[:8].upper() == b"* SEARCH":
                numbers.update(int(word) for word in line[8:].split() if word.isdigit())
        return sorted(numbers)

    async def read(self, uid: int, most_bytes: int) -> bytes | None:
        """The first bytes of a letter; None when it is no longer there. Its flags stay as they are."""
        command = b"UID FETCH %d (UID BODY.PEEK[]<0.%d>)" % (uid, most_bytes)
        lines = await _guarded(self._ask(command, most_bytes=most_bytes), self.address)
        for place, line in enumerate(lines):
            if _LITERAL.search(line) and b"FETCH" in line.upper() and place + 1 < len(lines):
                return lines[place + 1]
            quoted = re.search(rb'BODY\[\](?:<0>)? "((?:\\.|[^"\\])*+)"', line, re.IGNORECASE)
            if quoted:
                return _unescaped(quoted[1])
        return None

    async def mark_seen(self, uids: Sequence[int]) -> None:
        numbers = ",".join(map(str, uids)).encode()
        await _guarded(self._ask(b"UID STORE " + numbers + b" +FLAGS.SILENT (\\Seen)"), self.address)

    @property
    def can_wait(self) -> bool:
        return b"IDLE" in self._capabilities

    async def wait_for_news(self, seconds: float) -> bool:
        """Wait (IDLE, RFC 2177) until the folder has new letters, at most so long; whether it has."""
        tag = self._next_tag()
        self._writer.write(tag + b" IDLE\r\n")
        has_news = False
        try:
            async with asyncio.timeout(seconds):
                while not has_news:
                    has_news = await self._read_news(tag)
        except TimeoutError:
            pass
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, OSError):
            raise _failed(self.address, FailureKind.BROKEN, "{url}: the mail server broke off") from None
        self._writer.write(b"DONE\r\n")
        await _guarded(self._finish(tag), self.address)
        return has_news

    async def _read_news(self, tag: bytes) -> bool:
        """Whether the next line tells of a new letter."""
        line = await self._reader.readuntil(b"\r\n")
        if line.startswith(tag) or line.upper().startswith(b"* BYE"):
            raise ConnectionError
        found = _EXISTS.match(line)
        return found is not None and found[2].upper() == b"EXISTS"

    async def _finish(self, tag: bytes) -> list[bytes]:
        return await self._answer(tag, b"IDLE", 0, FailureKind.SERVER_ERROR)

    async def close(self) -> None:
        with suppress(OSError, ssl.SSLError, TimeoutError, RuntimeError):
            async with asyncio.timeout(2):
                self._writer.write(self._next_tag() + b" LOGOUT\r\n")
                await self._writer.drain()
        self._writer.close()
        self._writer.transport.abort()

    def _next_tag(self) -> bytes:
        self._number += 1
        return self._mark + b"%d" % self._number

    async def _ask(
        self,
        command: bytes,
        follow: bytes | None = None,
        *,
        most_bytes: int = 100_000,
        refused: FailureKind = FailureKind.SERVER_ERROR,
    ) -> list[bytes]:
        """Send a command, and `follow` when the server asks for more; the lines and literals of its answer."""
        tag = self._next_tag()
        self._writer.write(tag + b" " + command + b"\r\n")
        await self._writer.drain()
        return await self._answer(tag, command, most_bytes, refused, follow)

    async def _answer(
        self, tag: bytes, command: bytes, most_bytes: int, refused: FailureKind, follow: bytes | None = None
    ) -> list[bytes]:
        lines: list[bytes] = []
        received = 0
        while len(lines) < _MOST_LINES:
            line = await self._reader.readuntil(b"\r\n")
            received += len(line)
            if line.startswith(b"+") and (follow is not None or b"AUTHENTICATE" in command):
                # A second challenge is an error in disguise: an empty line gets it told.
                self._writer.write((follow or b"") + b"\r\n")
                follow = None
                continue
            if line.startswith(tag + b" "):
                add_usage(0, received)
                self._check(line[len(tag) + 1 :], command, refused)
                return lines
            lines.append(line)
            if literal := _LITERAL.search(line):
                size = int(literal[1])
                if size + received > 2 * most_bytes + 1_000_000:
                    raise ConnectionError
                lines.append(await self._reader.readexactly(size))
                received += size
            if received > 2 * most_bytes + 2 * _LONGEST_LINE:
                raise ConnectionError
        raise ConnectionError

    def _check(self, verdict: bytes, command: bytes, refused: FailureKind) -> None:
        if verdict[:2].upper() == b"OK":
            return
        said = verdict.decode("utf-8", "replace").strip()[:200]
        if b"[UNAVAILABLE]" in verdict or b"[INUSE]" in verdict or b"[LIMIT]" in verdict:
            refused = FailureKind.SERVER_ERROR
        templates = {
            FailureKind.UNAUTHORIZED: "{url}: the mail server refuses the user name and password: {said}",
            FailureKind.NOT_FOUND: "{url}: the folder cannot be opened: {said}",
        }
        template = templates.get(refused, "{url}: the mail server refused {command}: {said}")
        word = command.split()[0].decode("ascii", "replace")
        raise FetchError(refused, template, url=self.address.shown, said=said, command=word)


def _new_mark() -> bytes:
    """How the tags of commands begin. Not to be guessed."""
    return secrets.token_hex(4).encode()


def _quoted(text: str) -> bytes:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    if any(mark in escaped for mark in "\r\n\0"):
        raise ValueError("a line break")
    return b'"' + escaped.encode() + b'"'


def _unquoted(text: bytes) -> str:
    text = text.strip()
    if text.startswith(b'"') and text.endswith(b'"') and len(text) > 1:
        text = _unescaped(text[1:-1])
    return text.decode("ascii", "replace")


def _unescaped(text: bytes) -> bytes:
    return re.sub(rb"\\(.)", rb"\1", text, flags=re.DOTALL)


def encode_name(name: str) -> str:
    """A folder's name as servers have it: modified UTF-7 (RFC 3501, 5.1.3)."""
    found: list[str] = []
    for part in re.findall(r"[\x20-\x7e]+|[^\x20-\x7e]+", name):
        if part.isascii() and part.isprintable():
            found.append(part.replace("&", "&-"))
        else:
            coded = base64.b64encode(part.encode("utf-16-be", "surrogatepass")).decode().rstrip("=")
            found.append("&" + coded.replace("/", ",") + "-")
    return "".join(found)


def decode_name(name: str) -> str:
    def plain(match: re.Match[str]) -> str:
        if not match[1]:
            return "&"
        coded = match[1].replace(",", "/")
        try:
            return base64.b64decode(coded + "=" * (-len(coded) % 4)).decode("utf-16-be")
        except ValueError:
            return match[0]

    return re.sub(r"&([A-Za-z0-9+,]*)-", plain, name)

"""`mail.imap`: letters in a folder of a mailbox, read where they are. Their flags stay as they are, unless told.

A visit reads the letters with a higher number than the last one that was read, which the collector's memory keeps and
which is stored in one transaction with them: none is lost, and none comes twice. Where the server has given new numbers
(UIDVALIDITY), it looks by date, and letters are recognised by their Message-ID.
"""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

import orjson
from pydantic import Field, field_validator

from headwater.collectors.base import Collector, FetchRequest, FetchResult, SourceConfig
from headwater.errors import FailureKind, FetchError, InputError, VisitError
from headwater.fetch.imap import PORTS, Folder, Mailbox, MailboxAddress, open_mailbox
from headwater.formats.mail.read import MOST_BYTES, Letter, read_letter, read_sender
from headwater.model import Item, Json, SourceMetadata
from headwater.threads import read_aside

MOST_LETTERS: Final = (
    500  # of one visit; the rest waits for the next, which comes at once when it is asked for
)
MOST_BYTES_AT_ONCE: Final = 30_000_000
MOST_SENDERS: Final = 20
_SENDER = re.compile(r"(?:[^\s\"\\<>(),;:@]*+@)?[A-Za-z0-9._-]++", re.ASCII)
_DAYS_BACK: Final = 2  # where letters have new numbers: before the last visit, for servers' clocks and zones


def check_senders(senders: tuple[str, ...]) -> tuple[str, ...]:
    """Addresses and domains in lower case; ValueError for what is neither."""
    for sender in senders:
        if not _SENDER.fullmatch(sender):
            raise ValueError(f"{sender} is not an address or a domain")
    return tuple(sender.lower() for sender in senders)


class MailboxConfig(SourceConfig):
    folder: str = Field(default="INBOX", min_length=1, max_length=200, description="The folder to read.")
    senders: tuple[str, ...] = Field(
        default=(),
        max_length=MOST_SENDERS,
        description="Accept e-mails from these addresses or domains only. Leave empty to accept all.",
    )
    mark_read: bool = Field(
        default=False, description="Mark e-mails as read on the server once they are stored."
    )
    first: int = Field(
        default=20, ge=1, le=MOST_LETTERS, description="How many e-mails the first visit reads."
    )
    idle: bool = Field(
        default=True, description="Let the server announce new e-mails at once, where it can (IDLE)."
    )
    keep_trackers: bool = Field(
        default=False, description="Keep the pictures and links that senders use for tracking."
    )

    _are_senders = field_validator("senders")(check_senders)


@dataclass(frozen=True, slots=True)
class Memory:
    """Up to where a folder was read."""

    validity: int = 0
    last_uid: int = 0
    visited_at: float = 0.0


class MailboxCollector(Collector):
    config_model = MailboxConfig
    remembers = True
    schemes = ("imaps", "imap")

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock

    def locate(self, url: str | None, config: Json) -> tuple[str | None, Json]:
        """An address names user, folder and senders, so that two mailboxes of one server are two sources."""
        if url is None:
            return None, config
        config = {**config, **_read_address(url)}
        parts = urlsplit(url if "://" in url else f"imaps://{url}")
        if not config.get("user"):
            raise InputError("a mailbox needs its user, as in imaps://user@{host}", host=parts.hostname or "")
        port = f":{parts.port}" if parts.port and parts.port != PORTS.get(parts.scheme) else ""
        user = quote(str(config["user"]), safe="")
        senders = ",".join(quote(str(sender), safe="@") for sender in config.get("senders", ()))
        folder = quote(str(config.get("folder", "INBOX")), safe="/")
        only = f"?from={senders}" if senders else ""
        return f"{parts.scheme}://{user}@{(parts.hostname or '').lower()}{port}/{folder}{only}", config

    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        config: MailboxConfig = fetch_request.config
        address = mailbox_address(fetch_request.source.url, config)
        memory = read_memory(fetch_request.memory)
        now = self._clock()
        async with open_mailbox(fetch_request.fetcher, address) as mailbox:
            folder = await _open(mailbox, config)
            uids = await _new_uids(mailbox, folder, memory, config)
            left_for_next = uids[MOST_LETTERS:]
            letters, last, received = await _read_letters(mailbox, uids[:MOST_LETTERS], config)
            if config.mark_read and letters:
                await mailbox.mark_seen([uid for uid, _ in letters])
        if not left_for_next and last == (uids[-1] if uids else 0):
            last = max(last, (folder.next_uid or 1) - 1, 0)
        if folder.validity == memory.validity:
            last = max(last, memory.last_uid)
        found = [letter for _, letter in letters]
        return FetchResult(
            items=_items(found),
            unchanged=not found,
            metadata=SourceMetadata(_title(found, config)) if found else SourceMetadata(),
            bytes_received=received,
            memory=orjson.dumps({"validity": folder.validity, "last_uid": last, "visited_at": now}),
        )


def _items(letters: Sequence[Letter]) -> tuple[Item, ...]:
    """The letters, each once: a letter may stand in a folder twice."""
    return tuple({letter.item.external_id: letter.item for letter in letters}.values())


def _title(letters: Sequence[Letter], config: MailboxConfig) -> str | None:
    """What a source is called: as its one sender calls itself, else the folder."""
    if len(config.senders) == 1 and letters:
        return letters[-1].from_name
    return config.folder


def mailbox_address(url: str, config: MailboxConfig) -> MailboxAddress:
    parts = urlsplit(url)
    user = config.user or unquote(parts.username or "")
    return MailboxAddress(
        host=parts.hostname or "",
        user=user,
        password=config.password or "",
        token=config.bearer_token,
        scheme=parts.scheme,
        port=parts.port or PORTS[parts.scheme],
    )


async def _open(mailbox: Mailbox, config: MailboxConfig) -> Folder:
    try:
        return await mailbox.open(config.folder, writable=config.mark_read)
    except FetchError as error:
        if error.kind is not FailureKind.NOT_FOUND:
            raise
        folders = ", ".join((await mailbox.folders())[:30])
        raise VisitError(
            FailureKind.NOT_FOUND,
            "{url}: the folder {folder} cannot be opened; there are: {folders}",
            url=mailbox.address.shown,
            folder=config.folder,
            folders=folders,
        ) from None


async def _new_uids(mailbox: Mailbox, folder: Folder, memory: Memory, config: MailboxConfig) -> list[int]:
    """The numbers of the letters to read, oldest first."""
    if not folder.count:
        return []
    senders = _from(config.senders)
    if memory.visited_at == 0.0:
        return (await mailbox.search(senders or "ALL"))[-config.first :]
    if folder.validity != memory.validity:
        since = datetime.fromtimestamp(memory.visited_at, UTC) - timedelta(days=_DAYS_BACK)
        return await mailbox.search(f"SINCE {imap_date(since)} {senders}".strip())
    if folder.next_uid is not None and folder.next_uid <= memory.last_uid + 1:
        return []
    found = await mailbox.search(f"UID {memory.last_uid + 1}:* {senders}".strip())
    return [uid for uid in found if uid > memory.last_uid]  # `n:*` names the last letter, whatever n is


def imap_date(moment: datetime) -> str:
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    return f"{moment.day}-{months[moment.month - 1]}-{moment.year}"


def _from(senders: Sequence[str]) -> str:
    """The criterion for letters of one of the senders."""
    if not senders:
        return ""
    first, *others = senders
    own = f'FROM "{first}"'
    return f"OR {own} {_from(others)}" if others else own


async def _read_letters(
    mailbox: Mailbox, uids: Sequence[int], config: MailboxConfig
) -> tuple[list[tuple[int, Letter]], int, int]:
    """The wanted letters with their numbers, the number up to which they were read, and the bytes that came."""
    letters: list[tuple[int, Letter]] = []
    last = received = 0
    for uid in uids:
        data = await mailbox.read(uid, MOST_BYTES)
        last = uid
        if data is None:
            continue  # deleted since
        received += len(data)
        if is_from(read_sender(data), config.senders):
            letters.append((uid, await read_aside(len(data), _read, data, config.keep_trackers)))
        if received >= MOST_BYTES_AT_ONCE:
            break
    return letters, last, received


def _read(data: bytes, keep_trackers: bool) -> Letter:
    return read_letter(data, keep_trackers=keep_trackers)


def is_from(sender: str, senders: Sequence[str]) -> bool:
    """Whether a letter of `sender` is wanted: by its address, or its domain and what is below it."""
    if not senders:
        return True
    domain = sender.rpartition("@")[2]
    return any(
        sender == wanted
        if "@" in wanted.strip("@") and not wanted.startswith("@")
        else domain == wanted.lstrip("@") or domain.endswith("." + wanted.lstrip("@"))
        for wanted in senders
    )


def read_memory(memory: bytes | None) -> Memory:
    """A memory that cannot be read is none: letters are recognised by their Message-ID."""
    try:
        found = orjson.loads(memory or b"{}")
        return Memory(int(found["validity"]), int(found["last_uid"]), float(found["visited_at"]))
    except (ValueError, TypeError, KeyError):
        return Memory()


def _read_address(url: str) -> dict[str, Any]:
    """What an address says: `imaps://user:password@host/Folder?from=one@example.org,example.com`."""
    text = url.strip()
    parts = urlsplit(text if "://" in text else f"imaps://{text}")
    try:
        is_valid = parts.scheme in PORTS and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise InputError(
            "a mailbox has an address like imaps://user@mail.example.org/INBOX; {url} is none",
            url=text.rpartition("@")[2],
        )
    found: dict[str, Any] = {}
    if parts.username:
        found["user"] = unquote(parts.username)
    if parts.password:
        found["password"] = unquote(parts.password)
    if folder := unquote(parts.path.strip("/")):
        found["folder"] = folder
    if senders := parse_qs(parts.query).get("from"):
        found["senders"] = [each.strip() for each in ",".join(senders).split(",") if each.strip()]
    return found

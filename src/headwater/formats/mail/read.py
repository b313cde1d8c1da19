"""Reads a message (RFC 5322, MIME) as far as it can be read, in bounded time; damaged ones too."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.errors import MessageError
from email.header import decode_header
from email.message import Message
from email.parser import BytesParser
from email.policy import Compat32
from email.utils import getaddresses, parsedate_to_datetime
from typing import Any, Final

from headwater.formats.charset import codec_for, decode
from headwater.formats.dates import parse_date
from headwater.formats.html import collapse, escape_text, text_as_html
from headwater.formats.mail.actions import find_actions
from headwater.formats.mail.clean import clean_letter
from headwater.markup import LONGEST_LINE, LONGEST_TEXT, paragraphs_of
from headwater.model import Item

MOST_BYTES: Final = 3_000_000  # of a message: its text comes first, its attachments after
MOST_PARTS: Final = 100
_MOST_LINES: Final = 150_000
_MOST_BOUNDARIES: Final = 40  # parts inside of parts; each makes every line dearer to read
_LONGEST_HEADER: Final = 20_000
_MOST_PARAMETERS: Final = 200  # of one header, as in `text/plain; charset=utf-8`
_MOST_ENCODED: Final = 300  # encoded words of one header
_SUMMARY_CHARACTERS: Final = 300

_BOUNDARY = re.compile(rb"boundary\s*=", re.IGNORECASE)
_LINE_END = re.compile(rb"\r\n|\r|\n")


class _Bounded(Compat32):
    """Keeps the beginning of a header: what Python makes of a long one takes the square of its length."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        parts = value[:_LONGEST_HEADER].split(";", _MOST_PARAMETERS)
        return name, ";".join(parts[:_MOST_PARAMETERS])


_POLICY: Final = _Bounded()
_UNREADABLE = (MessageError, RecursionError, LookupError, ValueError, AttributeError, TypeError, IndexError)


@dataclass(frozen=True, slots=True)
class Letter:
    """A message as an item, and who sent it."""

    item: Item
    sender: str  # the address, in lower case; empty where there is none
    sender_name: str
    list_name: str | None = None

    @property
    def from_name(self) -> str:
        return self.list_name or self.sender_name or self.sender


def read_letter(data: bytes, *, keep_trackers: bool = False) -> Letter:
    """What a message says. It never fails: what cannot be taken apart is shown as the text that it is."""
    data = _bounded(data)
    message = _parse(data)
    sender, sender_name = _sender(message)
    body, is_html = _body(message)
    subject = _header(message, "Subject")
    cleaned = clean_letter(body, keep_trackers=keep_trackers) if is_html else None
    content = body if cleaned is None else cleaned.html
    actions = find_actions(message, _header, subject, content if is_html else None)
    text = paragraphs_of(content, 4 * _SUMMARY_CHARACTERS)
    cut = len(data) >= MOST_BYTES and not body
    item = Item(
        external_id=_identity(message, sender, subject, body),
        url=actions.web_url,
        title=collapse(subject) or collapse(text)[:80] or sender_name or sender,
        author=sender_name or sender or None,
        summary=collapse(text)[:_SUMMARY_CHARACTERS] or None,
        content=content or None,
        published_at=_date(message),
        cut=cut or len(content) >= LONGEST_TEXT,
        extras={"letter": _said(message, sender, actions.told)},
    )
    return Letter(item, sender, sender_name, _list_name(message))


def read_sender(data: bytes) -> str:
    """The address a message says it is from, in lower case; empty where there is none."""
    head = data[:MOST_BYTES].partition(b"\r\n\r\n")[0].partition(b"\n\n")[0]
    return _sender(_parse(head[:200_000] + b"\r\n\r\n"))[0]


def _bounded(data: bytes) -> bytes:
    """As much of a message as is read: so many bytes and lines."""
    data = data[:MOST_BYTES]
    if data.count(b"\n") + data.count(b"\r") > _MOST_LINES:
        ends = _LINE_END.finditer(data)
        last = next((end for number, end in enumerate(ends) if number == _MOST_LINES), None)
        data = data if last is None else data[: last.end()]
    return data


def _parse(data: bytes) -> Message:
    if len(_BOUNDARY.findall(data)) > _MOST_BOUNDARIES:
        return _plain(data)
    try:
        return BytesParser(policy=_POLICY).parsebytes(data)
    except _UNREADABLE:
        return _plain(data)


def _plain(data: bytes) -> Message:
    """A message of which only the head is taken apart; its body stands as it came."""
    try:
        message = BytesParser(policy=_POLICY).parsebytes(data, headersonly=True)
    except _UNREADABLE:
        message = Message()
    for name in ("Content-Type", "Content-Transfer-Encoding"):
        del message[name]
    return message


def _raw(message: Message, name: str) -> str | None:
    """A header as it came; bytes beyond ASCII are in it as surrogates."""
    wanted = name.lower()
    return next((str(value) for key, value in message.raw_items() if key.lower() == wanted), None)


def _header(message: Message, name: str) -> str:
    """A header as people read it, on one line: encoded words decoded, line breaks gone."""
    return decode_words(_raw(message, name) or "")


def decode_words(raw: str) -> str:
    """Text with RFC 2047 encoded words decoded; bytes that stand there raw are read as UTF-8 or what they look like."""
    raw = raw[:_LONGEST_HEADER]
    try:
        parts = decode_header(raw) if raw.count("=?") <= _MOST_ENCODED else [(raw, None)]
    except (MessageError, ValueError):
        parts = [(raw, None)]
    return collapse("".join(_decoded(part, charset) for part, charset in parts))


def _decoded(part: str | bytes, charset: str | None) -> str:
    if isinstance(part, str):
        part = part.encode("utf-8", "surrogateescape")
        charset = None
    # `unknown-8bit` stands for bytes that no charset was given for.
    return _decode_text(part, charset)


def _decode_text(data: bytes, charset: str | None) -> str:
    codec = codec_for(charset) if charset else None
    if codec is not None:
        try:
            return data.decode(codec)
        except (UnicodeError, ValueError):
            pass
    return decode(data).text


def _sender(message: Message) -> tuple[str, str]:
    """Address and name of who a message is from."""
    for header in ("From", "Sender", "Reply-To"):
        raw = _raw(message, header)
        if raw is None:
            continue
        try:
            pairs = getaddresses([raw[:_LONGEST_HEADER]])
        except _UNREADABLE:
            continue
        for name, address in pairs:
            if "@" in address:
                return address.strip().lower(), decode_words(name)
    return "", ""


def _list_name(message: Message) -> str | None:
    """The name of the list it went to: `List-Id: Garden letters <garden.example.org>`."""
    name = _header(message, "List-Id").partition("<")[0].strip(' "')
    return name[:200] or None


def _date(message: Message) -> float | None:
    raw = _header(message, "Date")
    if not raw or len(raw) > 200:
        return None
    found = parse_date(raw)
    if found is None:
        try:
            found = parsedate_to_datetime(raw)
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    return found.timestamp()


def _identity(message: Message, sender: str, subject: str, body: str) -> str:
    """What tells a letter from all others: its Message-ID, else what it says."""
    found = "".join(str(message.get("Message-ID") or "").split())
    if 3 < len(found) <= 1_000:
        return found
    parts = (sender, subject, str(message.get("Date") or ""), body)
    return (
        "letter:" + hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=16).hexdigest()
    )


def _body(message: Message) -> tuple[str, bool]:
    """The text of a message, and whether it is HTML."""
    found = _readable(message, [MOST_PARTS])
    htmls = [text for text, is_html in found if is_html and text.strip()]
    if not htmls:
        return text_as_html("\n\n".join(text for text, _ in found))[:LONGEST_TEXT], False
    # Some programs send one HTML part before a picture and one after it, and plain text between them.
    whole = (text if is_html else f"<p>{escape_text(text)}</p>" for text, is_html in found if text.strip())
    return "\n".join(whole), True


def _readable(part: Message, left: list[int]) -> list[tuple[str, bool]]:
    """The texts of a part that are shown, in order; of alternatives the richest."""
    left[0] -= 1
    if left[0] < 0 or _is_attachment(part):
        return []
    if part.is_multipart():
        children = part.get_payload()
        parts = children if isinstance(children, list) else []
        texts = [_readable(each, left) for each in parts if isinstance(each, Message)]
        if part.get_content_subtype() == "alternative":
            rich = [each for each in texts if any(is_html for _, is_html in each)]
            return (rich or [each for each in texts if each] or [[]])[-1]
        return [text for each in texts for text in each]
    kind = part.get_content_type()
    if kind not in ("text/plain", "text/html"):
        return []
    return [(_text(part), kind == "text/html")]


def _is_attachment(part: Message) -> bool:
    return str(part.get("Content-Disposition") or "").strip().lower().startswith("attachment")


def _text(part: Message) -> str:
    """The text of one part; where its encoding is damaged, as it stands."""
    try:
        data = part.get_payload(decode=True)
    except _UNREADABLE:
        data = None
    if not isinstance(data, bytes):
        return str(part.get_payload() or "")
    try:
        charset = part.get_content_charset()
    except _UNREADABLE:
        charset = None
    return _decode_text(data, charset)


def _said(message: Message, sender: str, actions: dict[str, Any]) -> dict[str, Any]:
    """What an item keeps of the letter it came in."""
    said: dict[str, Any] = {"from": sender[:LONGEST_LINE], **actions}
    if authentication := _authentication(message):
        said["authentication"] = authentication
    if files := list(_attachments(message)):
        said["attachments"] = files
    return said


_AUTHENTICATION = re.compile(r"\b(dkim|spf|dmarc)\s*+=\s*+([a-z]{1,20})", re.IGNORECASE)


def _authentication(message: Message) -> dict[str, str]:
    """What the server that took the letter in says of its DKIM, SPF and DMARC: in the topmost such header, its own."""
    found: dict[str, str] = {}
    for method, verdict in _AUTHENTICATION.findall(_header(message, "Authentication-Results")):
        found.setdefault(method.lower(), verdict.lower())
    return found


def _attachments(message: Message) -> Iterator[str]:
    """The names of the files that came with it, which are not kept."""
    for number, part in enumerate(message.walk()):
        if number >= MOST_PARTS:
            return
        if not part.is_multipart() and _is_attachment(part):
            try:
                name = decode_words(part.get_filename() or "")
            except _UNREADABLE:
                name = ""
            yield name[:200] or part.get_content_type()

"""Composing one e-mail: text and HTML, with headers that nothing in an item can forge. Pure, but for the date.

Python's own header classes decode encoded words (`=?utf-8?q?…?=`) in whatever text they are given, and older ones write
the line breaks that come out of them as they are. So every text becomes a line without control characters and without
the beginning of an encoded word before it is a header.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import localtime
from hashlib import sha256

from headwater.errors import InputError
from headwater.formats.html import collapse, sanitize_html, text_as_html

_LONGEST_SUBJECT = 500
_BREAKING = frozenset(("Cc", "Cs", "Zl", "Zp"))  # control characters, halves of characters, line separators
_MAILBOX = re.compile(r"(?P<name>[^<>@]*)<(?P<spec>[^<>\s,;]+)>|[^<>\s,;]+")


@dataclass(frozen=True, slots=True)
class Letter:
    """What to write, and to whom. `html` is sanitised; without it the text is shown as HTML."""

    sender: str
    recipients: Sequence[str]
    subject: str
    text: str
    html: str | None = None
    reply_to: str | None = None


def header_line(text: str) -> str:
    """Any text as one header's value: what it says, on one line, with nothing left to decode."""
    plain = "".join(" " if unicodedata.category(each) in _BREAKING else each for each in text)
    return collapse(plain)[:_LONGEST_SUBJECT].replace("=?", "= ?")


def read_address(text: str) -> Address:
    """`ann@example.org` or `Ann <ann@example.org>`; InputError when it is neither."""
    form = _MAILBOX.fullmatch(text)
    try:
        if form is not None and text.isprintable() and "=?" not in text:
            address = Address(
                display_name=(form["name"] or "").strip(' "'), addr_spec=form["spec"] or form[0]
            )
            if address.domain:
                return address
    except (ValueError, IndexError, MessageError):
        pass
    raise InputError("{address} is not an e-mail address", address=text)


def compose(letter: Letter, idempotency_key: str) -> EmailMessage:
    """The message. The same key gives the same Message-ID, by which receivers drop what they have."""
    sender = read_address(letter.sender)
    message = EmailMessage(policy=SMTP)
    message["From"] = sender
    message["To"] = [read_address(each) for each in letter.recipients]
    if letter.reply_to:
        message["Reply-To"] = read_address(letter.reply_to)
    message["Subject"] = header_line(letter.subject)
    message["Date"] = localtime()
    name = sha256(idempotency_key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    message["Message-ID"] = f"<{name}@{_ascii_domain(sender.domain)}>"
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no out-of-office reply answers it
    message.set_content(_sendable(letter.text))
    markup = text_as_html(letter.text) if letter.html is None else sanitize_html(letter.html)
    message.add_alternative(
        f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"></head><body>\n{_sendable(markup)}\n</body></html>\n',
        subtype="html",
    )
    return message


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _ascii_domain(domain: str) -> str:
    try:
        return domain.encode("idna").decode("ascii")
    except UnicodeError:
        return "localhost.invalid"

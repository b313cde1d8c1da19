"""What a reader can do with a letter: unsubscribe, confirm a subscription, read it on the web."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from typing import Any, Final
from urllib.parse import urlsplit

from headwater.formats.html import plain_text
from headwater.markup import LONGEST_URL, read_pieces, unescape_text

_MOST_LINKS: Final = 2_000
_LONGEST_LABEL: Final = 120
_ADDRESS = re.compile(r"<([^<>\s]{1,8000})>")
_HREF = re.compile(r"""\bhref\s*+=\s*+(?:"([^"<>]*+)"|'([^'<>]*+)'|([^\s"'<>]++))""", re.IGNORECASE)

# Read in lower case.
_READ_ONLINE = re.compile(
    r"(?:view|read|open|see)\b.{0,40}\b(?:browser|online|on the web|web version)"
    r"|web ?version|view (?:this )?(?:e-?mail|post|letter|newsletter)\b|在(?:线|浏览器)(?:中)?(?:查看|阅读|浏览|打开)"
    r"|(?:网页|在线)版|浏览器(?:中)?(?:查看|阅读|打开)"
)
_CONFIRM_LINK = re.compile(
    r"\b(?:confirm|verify|activate|opt[ -]?in|complete)\b|yes,? (?:subscribe|sign) me|确认|验证|激活"
)
_CONFIRM_SUBJECT = re.compile(
    r"\b(?:confirm|verify|activate|opt[ -]?in)\b.{0,60}\b(?:subscription|subscribe|e-?mail|address|sign-?up)"
    r"|\b(?:subscription|e-?mail|address|sign-?up)\b.{0,60}\b(?:confirm|verify|verification|activat)"
    r"|please confirm|confirm your|verify your|(?:确认|验证|激活).{0,10}(?:订阅|邮箱|邮件|地址|注册)"
    r"|(?:订阅|邮箱|邮件|注册).{0,10}(?:确认|验证|激活)"
)


@dataclass(frozen=True, slots=True)
class Actions:
    """`told` is what the item keeps, by name; `web_url` is where the letter can be read on the web."""

    web_url: str | None
    told: dict[str, Any]


def find_actions(
    message: Message, header: Callable[[Message, str], str], subject: str, body: str | None
) -> Actions:
    """What can be done with a letter, by its headers and the links in its HTML."""
    links = find_links(body) if body else []
    told: dict[str, Any] = {}
    for address in _ADDRESS.findall(header(message, "List-Unsubscribe")):
        if _is_web(address) and "unsubscribe_url" not in told:
            told["unsubscribe_url"] = address
        elif address.lower().startswith("mailto:") and "unsubscribe_mail" not in told:
            told["unsubscribe_mail"] = address
    if "unsubscribe_url" in told and is_one_click(header(message, "List-Unsubscribe-Post")):
        told["unsubscribe_one_click"] = told["unsubscribe_url"].lower().startswith("https:")
    if confirm := _confirmation(subject, links):
        told["confirm_url"] = confirm
    return Actions(_web_address(message, header, links), told)


def is_one_click(post_header: str) -> bool:
    """Whether a POST of this to the address unsubscribes without asking (RFC 8058)."""
    return post_header.replace(" ", "").lower() == "list-unsubscribe=one-click"


def find_links(body: str) -> list[tuple[str, str]]:
    """The (address, words) pairs of the links in a body, in order."""
    found: list[tuple[str, str]] = []
    address: str | None = None
    words: list[str] = []
    for piece in read_pieces(body):
        if piece.name == "a":
            if address is not None:
                found.append((address, plain_text("".join(words))[:_LONGEST_LABEL]))
            address, words = (None if piece.is_end else _href(piece.text)), []
            if len(found) >= _MOST_LINKS:
                break
        elif address is not None and not piece.name and len(words) < 50:
            words.append(piece.text[:_LONGEST_LABEL])
    return found


def _href(tag: str) -> str | None:
    found = _HREF.search(tag)
    if found is None:
        return None
    address = unescape_text(found[1] or found[2] or found[3] or "").strip()
    return address if _is_web(address) else None


def _is_web(address: str) -> bool:
    if len(address) > LONGEST_URL or not address.lower().startswith(("https://", "http://")):
        return False
    try:
        return bool(urlsplit(address).hostname)
    except ValueError:
        return False


def _confirmation(subject: str, links: list[tuple[str, str]]) -> str | None:
    """Where to confirm, in a letter whose subject asks for it: a newsletter that is not confirmed sends nothing."""
    if not _CONFIRM_SUBJECT.search(subject[:500].lower()):
        return None
    return next((address for address, words in links if _CONFIRM_LINK.search(words.lower())), None)


def _web_address(
    message: Message, header: Callable[[Message, str], str], links: list[tuple[str, str]]
) -> str | None:
    for name in ("Archived-At", "X-Archived-At"):
        for address in _ADDRESS.findall(header(message, name)):
            if _is_web(address):
                return str(address)
    return next((address for address, words in links if _READ_ONLINE.search(words.lower())), None)

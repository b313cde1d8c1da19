"""A letter's HTML without what watches its reader: pixels that tell that it was opened, links that count who followed.

A link through a counter is replaced by where it leads, where its address says so; where only the counter knows, it
stays. No request is made.
"""

import base64
import binascii
import re
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from headwater.formats.html import escape_text
from headwater.markup import LONGEST_URL, bound_html, read_pieces, unescape_text

_LOOK_INSIDE: Final = 5  # redirects in redirects
_HIDDEN_CONTENT: Final = frozenset(("head", "title", "noscript", "object", "iframe", "form"))

_ATTRIBUTE = re.compile(
    r"""(?<![\w:-])([A-Za-z][\w:-]*+)\s*+=\s*+(?:"([^"<>]*+)"|'([^'<>]*+)'|([^\s"'<>]++))""", re.ASCII
)
_TINY = re.compile(r"\s*0*[0-3](?:\.\d*)?(?:px)?\s*\Z", re.IGNORECASE)
_HIDDEN_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*0(?![.\d])"
    r"|(?:max-)?(?:width|height)\s*:\s*[01](?:px)?\s*(?:!important\s*)?(?:;|\Z)",
    re.IGNORECASE,
)
# Addresses of pictures that only count: the senders' own, and those of the services that send for others.
_PIXEL = re.compile(
    r"/(?:track(?:ing)?|wf|e|o|trk|ss|imp)/(?:o|open|opened|pixel|view|imp)\b|/open(?:\.php|\.aspx|\.gif)\b|track/open"
    r"|/open(?:\?|\Z)|/(?:pixel|beacon|blank|spacer|1x1|transparent|clear)\.(?:gif|png)\b|[/.](?:pixel|beacon|opens?|email-open)[./?]"
    r"|/e/(?:eo|o)\?|google-analytics\.com|doubleclick\.net|/email[-_]?open|mailstat|emltrk|awstrack\.me/I0/",
    re.IGNORECASE,
)
_TARGET_NAMES: Final = (
    *("url", "u", "target", "redirect", "redirect_url", "redirect_to", "redirecturl", "dest", "destination"),
    *("to", "link", "q", "goto", "r", "l", "p1", "upn", "href", "out"),
)
_COUNTING_PATH = re.compile(
    r"/(?:click|clicks|redirect|redir|r|l|ls|track|trk|link|links|out|go|url|cl0?|c)(?:[/.?]|\Z)|click|redirect|track",
    re.IGNORECASE,
)
_COUNTING_NAMES = re.compile(
    r"(?:utm_\w+|mc_[ce]id|_hsenc|_hsmi|hsctatracking|mkt_tok|vero_id|vero_conv|ck_subscriber_id|fbclid|gclid|msclkid"
    r"|oly_anon_id|oly_enc_id|_openstat|yclid|spm|s_cid|elqtrack\w*|bsft_\w+|trk_(?:contact|msg|module|sid))\Z",
    re.IGNORECASE,
)


class Cleaned(NamedTuple):
    html: str
    pixels: int  # that were removed
    links: int  # that were replaced by where they lead


def clean_letter(body: str, *, keep_trackers: bool = False) -> Cleaned:
    """The body of a letter as it is stored."""
    kept: list[str] = []
    pixels = links = 0
    hidden: str | None = None
    for piece in read_pieces(bound_html(body).body):
        name = piece.name
        if hidden is not None:
            hidden = None if name == hidden and piece.is_end else hidden
            continue
        if name in _HIDDEN_CONTENT:
            # A form or a frame of a letter is of no use; what stands in `head` is not for reading.
            hidden = None if piece.is_end or name in ("form", "noscript", "object") else name
            continue
        text = piece.text
        if not name or piece.is_end or keep_trackers:
            kept.append(text)
        elif name == "img" and is_pixel(text):
            pixels += 1
        elif name in ("a", "area"):
            direct = _with_direct_link(text)
            links += direct is not text
            kept.append(direct)
        else:
            kept.append(text)
    return Cleaned("".join(kept).strip(), pixels, links)


def is_pixel(tag: str) -> bool:
    """Whether an `img` tag shows nothing, or is for counting."""
    attributes = _attributes(tag)
    sizes = [attributes[name] for name in ("width", "height") if name in attributes]
    if sizes and all(_TINY.match(size) for size in sizes):
        return True
    if _HIDDEN_STYLE.search(attributes.get("style", "")):
        return True
    source = unescape_text(attributes.get("src", ""))
    return bool(_PIXEL.search(source[:LONGEST_URL]))


def _attributes(tag: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(tag):
        found.setdefault(match[1].lower(), match[2] or match[3] or match[4] or "")
    return found


def _with_direct_link(tag: str) -> str:
    address = _attributes(tag).get("href")
    if not address:
        return tag
    plain = unescape_text(address).strip()
    direct = direct_address(plain)
    if direct == plain:
        return tag
    return tag.replace(address, escape_text(direct).replace('"', "%22").replace("'", "%27"), 1)


def direct_address(address: str) -> str:
    """Where a link leads, as far as its address says; without what tells who followed it."""
    for _ in range(_LOOK_INSIDE):
        inner = _inner_address(address)
        if inner is None:
            break
        address = inner
    return _without_counting(address)


def _inner_address(address: str) -> str | None:
    """The address that a counter's address carries."""
    try:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not _COUNTING_PATH.search(parts.netloc + parts.path):
            return None
        given = dict(parse_qsl(parts.query[:LONGEST_URL], max_num_fields=50))
    except ValueError:
        return None
    lower = {name.lower(): value for name, value in given.items()}
    for name in _TARGET_NAMES:
        if found := _as_address(lower.get(name, "")):
            return found
    for segment in parts.path.split("/"):
        if found := _as_address(unquote(segment)):
            return found
    # `https://counter.example/CL0/https:%2F%2Fexample.org%2F/1/…` and the like, unescaped
    inner = re.search(r"/(https?:/{1,2}[^/\s].*)", parts.path)
    return _as_address(re.sub(r"\A(https?:)/(?!/)", r"\1//", inner[1])) if inner else None


def _as_address(text: str) -> str | None:
    if not 10 <= len(text) <= LONGEST_URL:
        return None
    if text.startswith(("https://", "http://")):
        return text if urlsplit(text).hostname else None
    if re.fullmatch(r"aHR0c[A-Za-z0-9+/_=-]++", text):  # how base64 writes "http"
        try:
            plain = base64.b64decode(text.translate({45: 43, 95: 47}) + "=" * (-len(text) % 4)).decode()
        except (binascii.Error, ValueError):
            return None
        return plain if plain.startswith(("https://", "http://")) and plain.isprintable() else None
    return None


def _without_counting(address: str) -> str:
    try:
        parts = urlsplit(address)
        if not parts.query or not _has_counting(parts.query):
            return address
        kept = [
            (name, value)
            for name, value in parse_qsl(parts.query, keep_blank_values=True, max_num_fields=100)
            if not _COUNTING_NAMES.match(name)
        ]
    except ValueError:
        return address
    return urlunsplit(parts._replace(query=urlencode(kept)))


def _has_counting(query: str) -> bool:
    names = (pair.partition("=")[0] for pair in query.split("&"))
    return any(_COUNTING_NAMES.match(name) for name in names)

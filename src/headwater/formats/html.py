"""HTML in feeds: the text of it for titles, and a harmless form of it for showing and publishing.

Bodies are kept raw everywhere else; `sanitize_html` is the one way from a stored body to a reader's screen.
"""

import html
import re
import unicodedata
from typing import Final

import nh3

from headwater.markup import LONGEST_LINE, bound_html, unescape_text

_TAGS_IN_TEXT = re.compile(
    r"</?(?:a|abbr|acronym|b|bdi|bdo|big|blockquote|br|center|cite|code|dd|del|dfn|div|dl|dt|em|font|h[1-6]|hr|i|img"
    r"|ins|kbd|li|mark|nobr|ol|p|pre|q|s|samp|script|small|span|strike|strong|style|sub|sup|svg|table|tbody|td|th|thead"
    r"|time|tr|tt|html|head|body|title|meta|u|ul|var|wbr|iframe|video|audio|picture|source|figure|figcaption|section|article)"
    r"(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_COMMENTS = re.compile(r"<!--(?:[^-]|-(?!->))*+(?:-->|\Z)|<![A-Za-z][^<>]*>|<\?xml[^<>]*>")
_SILENT = re.compile(r"<(script|style)\b[^<]*+(?:<(?!/\1)[^<]*+)*+(?:</\1[^<>]*+>?|\Z)", re.IGNORECASE)
_BREAKS = re.compile(r"<(?:br|/?p|/?div|/?li|/?tr|/?h[1-6])\b[^<>]*>", re.IGNORECASE)

_TAGS: Final = (
    nh3.ALLOWED_TAGS | {"audio", "video", "source", "picture", "figure", "figcaption", "track"}
) - {
    "map",
    "area",
}
_ATTRIBUTES: Final[dict[str, set[str]]] = {
    **{tag: set(names) for tag, names in nh3.ALLOWED_ATTRIBUTES.items()},
    "audio": {"src", "controls", "preload", "loop"},
    "video": {"src", "controls", "preload", "loop", "poster", "width", "height"},
    "source": {"src", "type", "media", "srcset", "sizes"},
    "track": {"src", "kind", "srclang", "label"},
    "img": {"src", "alt", "title", "width", "height", "srcset", "sizes"},
}
_SCHEMES: Final = {"http", "https", "mailto", "tel", "magnet", "ftp"}
_WITH_CONTENT: Final = {"script", "style", "template", "noscript", "iframe", "object", "embed", "math", "svg"}
_ADDRESSES: Final = frozenset(("href", "src", "poster", "cite", "srcset"))
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_ADDRESS = re.compile(r"https?://[^\s<>\"'`]+[^\s<>\"'`.,;:!?)\]}]")
_SUSPECT = re.compile(r"script\s*:|data\s*:", re.IGNORECASE)


_CLEANER: Final = nh3.Cleaner(
    tags=_TAGS,
    attributes=_ATTRIBUTES,
    clean_content_tags=_WITH_CONTENT,
    url_schemes=_SCHEMES,
    link_rel="noopener noreferrer nofollow",
    strip_comments=True,
)


def _check_address(tag: str, attribute: str, value: str) -> str | None:
    """Refuse an address whose scheme is hidden behind white space that some programs skip and browsers do
    not."""
    if attribute not in _ADDRESSES:
        return value
    bare = "".join(c for c in value if unicodedata.category(c)[0] not in "ZC")
    scheme = _SCHEME.match(bare)
    return value if scheme is None or scheme[1].lower() in _SCHEMES else None


_CAREFUL_CLEANER: Final = nh3.Cleaner(
    tags=_TAGS,
    attributes=_ATTRIBUTES,
    attribute_filter=_check_address,
    clean_content_tags=_WITH_CONTENT,
    url_schemes=_SCHEMES,
    link_rel="noopener noreferrer nofollow",
    strip_comments=True,
)


def sanitize_html(body: str) -> str:
    """`body` with nothing in it that can run, load a script, or draw outside of its place; cut where it is too big."""
    body = bound_html(body).body
    clean = _CLEANER.clean(body)
    # The careful one calls back for every attribute, so it is kept for what looks as if it needed it.
    return _CAREFUL_CLEANER.clean(body) if _SUSPECT.search(clean) else clean


def plain_text(markup: str) -> str:
    """The words of an HTML fragment in one line: tags gone, entities decoded, white space collapsed."""
    text = markup[:LONGEST_LINE]
    if "<" in text:
        text = _COMMENTS.sub("", text)
        text = _SILENT.sub("", text)
        text = _BREAKS.sub(" ", text)
        text = _TAGS_IN_TEXT.sub("", text)
    return " ".join((unescape_text(text) if "&" in text else text).split())


def collapse(text: str) -> str:
    """White space as a browser shows it: no ends, no runs. For lines, which are cut where they are none."""
    return " ".join(text[:LONGEST_LINE].split())


def escape_text(text: str) -> str:
    """Plain text as an HTML fragment."""
    return html.escape(text, quote=False)


def text_as_html(text: str) -> str:
    """Plain text as HTML: paragraphs, line breaks, and addresses that can be followed."""
    paragraphs = (part.strip() for part in text.replace("\r\n", "\n").split("\n\n"))
    return "\n".join(f"<p>{_inline(part)}</p>" for part in paragraphs if part)


def _inline(text: str) -> str:
    shown: list[str] = []
    end = 0
    for found in _ADDRESS.finditer(text):
        url = escape_text(found[0])
        shown += (escape_text(text[end : found.start()]), f'<a href="{url}">{url}</a>')
        end = found.end()
    return "".join((*shown, escape_text(text[end:]))).replace("\n", "<br>\n")

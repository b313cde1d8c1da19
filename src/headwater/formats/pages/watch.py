"""What a watched page says, without what always changes: times, counters, advertisements, and words for programs. Pure.

Two readings of a page tell the same when their lines are the same, whatever else is in its HTML.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from headwater.formats.html import collapse
from headwater.formats.links import resolve_html
from headwater.formats.pages.document import base_of, read_html
from headwater.markup import LONGEST_TEXT, paragraphs_of

MOST_LINES: Final = 5_000
LONGEST_WATCHED_LINE: Final = 4_000
_SILENT: Final = (
    "script, style, noscript, template, svg, iframe, object, embed, canvas, head, dialog"
    ", input, select, button"
)
_CHROME: Final = (
    "nav, aside, [role=navigation], [role=banner], [role=complementary], [role=contentinfo], [role=search]"
    ", [role=dialog], [hidden], [aria-hidden=true], ins.adsbygoogle, body > header, body > footer"
)
# Words of a class or an id that stand for what is not the page's own.
_FOREIGN = re.compile(
    r"(?:^|[-_\s])(?:ads?|adv|advert|advertisements?|adsense|adslot|banner|sponsor(?:ed|s)?|promo(?:ted)?|cookies?"
    r"|consent|gdpr|newsletter|share|sharing|social|related|recommend(?:ed|ations?)?|trending|popular|most-?read"
    r"|breadcrumbs?|captcha|weather-?widget|clock|countdown|visitors?|online-?(?:now|users?)|live-?chat|toast)"
    r"(?:$|[-_\s])",
    re.IGNORECASE,
)
_UNITS: Final = r"(?:s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?|mo|months?|y|years?)"
_AGO = re.compile(
    rf"\b(?:about |over |almost )?(?:an?|\d{{1,6}}) ?{_UNITS} ago\b|\bjust now\b|\bmoments? ago\b"
    r"|刚刚|(?<!\d)\d{1,6} ?(?:秒钟?|分钟|小时|天|周|个月|年)(?:之?前)",
    re.IGNORECASE,
)
_DATE_OR_TIME: Final = (
    r"(?:\d{4}[-/.年]\d{1,2}[-/.月]\d{1,2}日?|\d{1,2}[-/. ](?:\d{1,2}|[A-Za-z]{3,9})[-/. ,]{1,2}\d{2,4}"
    r"|[A-Za-z]{3,9}\.? \d{1,2},? \d{4}|(?<![\d.,])\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]\.?m\.?)?"
    r"|(?<![\d.,])\d{1,2}\.\d{2}(?= ?(?:h|Uhr|[ap]\.?m)\b))"  # not 12.50 alone, which is a price
)
_STAMPED: Final = (
    r"(?:updated?|modified|refreshed|generated|rendered|retrieved|checked|changed|as of|current time|local time"
    r"|server time|now|today is|page (?:created|generated|loaded))"
)
_STAMP = re.compile(
    rf"\b(?:last )?{_STAMPED}\b[^.;|\n]{{0,20}}?{_DATE_OR_TIME}[^|\n]{{0,30}}"
    r"|(?:最后|最近)?(?:更新|修改|生成|刷新|当前|现在|北京)(?:于|时间|日期)?\s?[:：]?\s?[^|\n]{0,6}"
    rf"{_DATE_OR_TIME}[^|\n]{{0,20}}",
    re.IGNORECASE,
)
_AMOUNT: Final = r"\d(?:[\d.,  ]{0,14}\d)?\+? ?(?:[kKmM]|万|亿|thousand|million)?"
_COUNTED: Final = (
    r"(?:views?|reads?|likes?|shares?|comments?|replies|reactions?|followers?|subscribers?|members?|visitors?"
    r"|visits?|hits?|downloads?|votes?|upvotes?|points|favou?rites?|retweets?|claps?|stars?|watchers?|forks?|plays?"
    r"|listeners?)"
)
_HAN_COUNTED: Final = r"(?:阅读|浏览|点赞|评论|分享|转发|收藏|播放|下载|在线|关注|访问|围观|观看)"
_COUNTER = re.compile(
    rf"(?<![\w.,]){_AMOUNT} (?:unique |total |new )?{_COUNTED}\b"
    rf"|\b{_COUNTED}\s?[:：(]\s?{_AMOUNT}\)?"
    rf"|(?<![\w.,]){_AMOUNT} (?:people|users?|guests?|others?)(?: (?:are|is|have))?"
    r" (?:viewing|watching|looking|online|here|reading|bought)[^|\n.]{0,30}"
    rf"|(?<![\d.,]){_AMOUNT} ?(?:次|人|条)?{_HAN_COUNTED}"
    rf"|{_HAN_COUNTED}(?:量|数|人数|次数)?\s?[:：(（]?\s?{_AMOUNT}\s?(?:次|人|条)?[)）]?",
    re.IGNORECASE,
)
_COUNTDOWN = re.compile(
    r"\b(?:ends?|starts?|closes?|expires?|remaining|left|countdown|offer)\b[^|\n\d]{0,20}"
    rf"(?:\d{{1,6}} ?{_UNITS}\b[ ,:]{{0,2}}){{1,6}}(?:left|remaining)?"
    r"|\b(?:ends?|closes?|expires?|countdown)\b[^|\n\d]{0,10}(?:\d{1,3}:){1,3}\d{2}\b"
    r"|(?:剩余|还剩|倒计时|距(?:离)?结束)[^|\n]{0,3}(?:\d{1,6} ?[天时小分钟秒:：]{1,3} ?){1,6}"
    r"|\b(?:\d{1,2}:){2}\d{2}\b(?= ?(?:left|remaining|to go))",
    re.IGNORECASE,
)
_MARK = re.compile(
    r"\b(?:request|session|trace|ray|build|reference|ref|cache|csrf|commit)[ -]?(?:id|no|number|key|token)?"
    r"\.? ?[:#] ?[A-Za-z0-9-]{6,64}\b|\b[0-9a-f]{8}(?:-?[0-9a-f]{4}){2,7}\b"
    r"|\b(?:in|took) \d{1,9}(?:\.\d{1,9})? ?(?:ms|s|seconds?)\b"
    r"|(?<!\d)\d{1,6} (?:queries|requests) in \d[\d.]{0,9} ?\w{0,12}",
    re.IGNORECASE,
)
_COPYRIGHT = re.compile(
    r"(?:©|\(c\)|copyright)[^|\n]{0,12}(?:19|20)\d{2}(?: ?[-–] ?(?:19|20)\d{2})?", re.IGNORECASE
)
_NOISE: Final = (_STAMP, _AGO, _COUNTDOWN, _COUNTER, _MARK, _COPYRIGHT)
_PUNCTUATION: Final = " \t·•|/,;:-–—()[]（）：，。"
_NUMBER = re.compile(r"-?\d+(?:[.,   '’]\d+)*")


@dataclass(frozen=True, slots=True)
class Watched:
    """A watched part of a page: its HTML to read, and the lines by which a change is told."""

    title: str
    html: str
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def read_watched(
    page: bytes,
    selector: str | None = None,
    ignore: Sequence[str] = (),
    *,
    url: str,
    content_type: str | None = None,
) -> Watched | None:
    """What the selector finds first on a page, or the whole page without its frame; None when there is nothing."""
    document = read_html(page, content_type)
    title = document.css_first("title")
    node = document.css_first(selector) if selector else _main_part(document)
    if node is None:
        return None
    for each in ignore:
        _remove(node, each)
    _remove(node, _SILENT)
    _remove(node, "time")
    if selector is None or node.tag in ("body", "main"):
        _remove(node, _CHROME)
    for inner in node.css("[class], [id]"):
        if inner.mem_id != node.mem_id and _is_foreign(inner):
            inner.decompose()
    html = resolve_html(node.inner_html or "", base_of(document, url))
    return Watched(collapse(title.text() if title else ""), html, significant_lines(html))


def _main_part(document: LexborHTMLParser) -> LexborNode | None:
    """What a page is about, where it says so; else all of it."""
    for selector in ("main", "[role=main]", "article"):
        found = document.css(selector)
        if len(found) == 1 and len(found[0].text()) > 40:
            return found[0]
    return document.body


def _remove(node: LexborNode, selector: str) -> None:
    for each in node.css(selector):
        if each.mem_id != node.mem_id:
            each.decompose()


def _is_foreign(node: LexborNode) -> bool:
    names = f"{node.attributes.get('class') or ''} {node.attributes.get('id') or ''}"[:500]
    return _FOREIGN.search(names) is not None


def significant_lines(html: str) -> tuple[str, ...]:
    """The lines of a text without what always changes."""
    lines = (significant(line) for line in paragraphs_of(html, LONGEST_TEXT).split("\n")[:MOST_LINES])
    return tuple(line for line in lines if line)


def significant(line: str) -> str:
    """A line without what always changes; empty where nothing else stands in it."""
    line = collapse(line[:LONGEST_WATCHED_LINE])
    for noise in _NOISE:
        line = noise.sub(" ", line)
    return collapse(line).strip(_PUNCTUATION)


def first_number(text: str) -> float | None:
    """The first number of a text, however its thousands and decimals are parted: `1,299.00`, `1.299,00`, `1 299`."""
    found = _NUMBER.search(text)
    if found is None:
        return None
    written = re.sub(r"[   '’]", "", found[0])
    last = max(written.rfind("."), written.rfind(","))
    if last >= 0:
        mark, fraction = written[last], written[last + 1 :]
        is_decimal = written.count(mark) == 1 and (len(fraction) != 3 or ("," in written and "." in written))
        whole = re.sub(r"[.,]", "", written[:last] if is_decimal else written)
        written = f"{whole}.{fraction}" if is_decimal else whole
    try:
        return float(written)
    except ValueError:
        return None

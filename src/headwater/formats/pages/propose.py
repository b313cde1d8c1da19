"""Proposes CSS selectors for a page that has no description: it looks for the structure that repeats. Pure.

    elements, without navigation and the like → groups with the same way down from the top → scored by what their
    members have (their own link, a telling title, a date, a text) → the best ones' selectors → their items

What is proposed is what `scrape` makes of the selectors, so it shows only what would be collected.
"""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import log2
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from headwater.formats.links import join
from headwater.formats.pages.document import base_of, read_html
from headwater.formats.pages.scrape import (
    ScrapedPage,
    Selectors,
    find_date,
    find_next,
    link_of,
    scrape,
    text_of,
)

MIN_ITEMS: Final = 3
MAX_ELEMENTS: Final = 30_000
MAX_DEPTH: Final = 60
MAX_GROUPS: Final = 60
MEASURED: Final = 12  # of a group's members: enough to know them all
MOSTLY: Final = 0.7

_CHROME_TAGS: Final = frozenset(
    ("nav", "footer", "form", "script", "style", "noscript", "template", "svg", "head", "select", "iframe")
)
_CHROME_ROLES: Final = frozenset(("navigation", "contentinfo", "banner", "search", "menu", "dialog"))
_CHROME_WORDS = re.compile(
    r"(?:^|[-_ ])(?:nav(?:bar|igation)?|menu|footer|sidebar|breadcrumbs?|cookies?|share|social|comments?"
    r"|pag(?:er|ination)|widgets?|related|tagcloud|tags?|login|signup|newsletter|advert(?:s|isement)?|ads?|banner"
    r"|skip|toolbar|legal)(?:$|[-_ ])",
    re.IGNORECASE,
)
# Classes that tell one member of a group from another, or come from a program and change with its next build.
_UNSTABLE = re.compile(
    r"\d{2,}|^(?:odd|even|first|last|active|current|selected|hidden|new|sticky|featured|row|col|clearfix)$"
    r"|^(?:css|sc|jsx|svelte|astro)-|[A-Za-z]__[A-Za-z0-9]{5,}$|[:/\[\]@!%.]|^-|^\d"
)
_CLASS = re.compile(r"[A-Za-z_][\w-]*\Z")
_HEADINGS: Final = ("h1", "h2", "h3", "h4", "h5", "h6")


@dataclass(frozen=True, slots=True)
class Proposal:
    selectors: Selectors
    page: ScrapedPage
    score: float


@dataclass(frozen=True, slots=True)
class _Member:
    """What one element of a group has."""

    href: str | None
    title: LexborNode | None
    title_length: int
    date: LexborNode | None
    text_length: int
    headings: int
    long_links: int


def propose(page: bytes, *, url: str, content_type: str | None = None, limit: int = 3) -> list[Proposal]:
    """Selectors for the items of a page, the most likely first; nothing where nothing repeats."""
    document = read_html(page, content_type)
    base = base_of(document, url)
    groups = [nodes for nodes in _groups(document) if len(nodes) >= MIN_ITEMS]
    groups.sort(key=len, reverse=True)
    scored = sorted(
        ((_score(nodes, base), nodes) for nodes in groups[:MAX_GROUPS]), key=lambda each: -each[0]
    )
    following = find_next(document)
    proposals: list[Proposal] = []
    taken: list[set[str]] = []
    for score, nodes in scored:
        if score <= 0 or len(proposals) == limit:
            break
        item = _select_group(document, nodes)
        if item is None:
            continue
        selectors = replace(_select_parts(item, nodes), next=following)
        found = scrape(page, selectors, url=url, content_type=content_type)
        ids = {each.external_id for each in found.items}
        # The same items by another way, or a part of them, are not a second choice.
        if len(ids) < MIN_ITEMS or any(len(ids & other) > len(ids) / 2 for other in taken):
            continue
        taken.append(ids)
        proposals.append(Proposal(selectors, found, score))
    return proposals


def _groups(document: LexborHTMLParser) -> Iterable[list[LexborNode]]:
    """Elements of the page's own matter by their way down from the top, given in tags and lasting classes."""
    groups: dict[str, list[LexborNode]] = {}
    count = 0
    if document.body is None:
        return ()
    waiting: deque[tuple[LexborNode, str, int]] = deque([(document.body, "", 0)])
    while waiting and count < MAX_ELEMENTS:  # level by level, so that what is cut off is the smallest parts
        parent, path, depth = waiting.popleft()
        children = [node for node in parent.iter() if not _is_chrome(node, depth)]
        count += len(children)
        ways = [f"{path}>{signature}" for signature in _signatures(children)]
        for node, way in zip(children, ways, strict=True):
            groups.setdefault(way, []).append(node)
        if depth < MAX_DEPTH:
            waiting.extend((node, way, depth + 1) for node, way in zip(children, ways, strict=True))
    return groups.values()


def _is_chrome(node: LexborNode, depth: int) -> bool:
    """Whether an element is the site's furniture and not the page's matter."""
    tag = node.tag or ""
    if tag in _CHROME_TAGS or tag == "aside" or (tag == "header" and depth < 3):
        return True
    attributes = node.attributes
    if (attributes.get("role") or "").lower() in _CHROME_ROLES or attributes.get("aria-hidden") == "true":
        return True
    names = f"{attributes.get('id') or ''} {attributes.get('class') or ''}".strip()
    # A <main class="has-sidebar"> is not a sidebar, and a <li class="tag-python"> is an item.
    return tag in ("div", "ul", "ol", "section", "p", "span") and bool(names and _CHROME_WORDS.search(names))


def _classes(node: LexborNode) -> list[str]:
    names = (node.attributes.get("class") or "").split()
    return [name for name in names if _CLASS.match(name) and not _UNSTABLE.search(name)]


def _signatures(siblings: Sequence[LexborNode]) -> list[str]:
    """What to call each of some siblings: its tag and the classes that most of its tag share.

    Where no class is shared by most, each keeps its own: they are different things.
    """
    tags = Counter(node.tag for node in siblings)
    classes = [_classes(node) for node in siblings]
    shared = Counter(
        (node.tag, name) for node, names in zip(siblings, classes, strict=True) for name in set(names)
    )
    most: Counter[str | None] = Counter()
    for (tag, _), count in shared.items():
        most[tag] = max(most[tag], count)
    common = {
        (tag, name)
        for (tag, name), count in shared.items()
        if 2 * count >= tags[tag]
        and count >= MOSTLY * most[tag]  # a colour is less common than what it colours
    }
    divided = {tag for tag, _ in common}
    return [
        ".".join(
            (
                node.tag or "",
                *sorted(name for name in names if node.tag not in divided or (node.tag, name) in common)[:4],
            )
        )
        for node, names in zip(siblings, classes, strict=True)
    ]


def _measure(node: LexborNode, base: str) -> _Member:
    link = link_of(node)
    heading = node.css_first(", ".join(_HEADINGS))
    title = heading if heading is not None and text_of(heading) else link
    headings = Counter(found.tag for found in node.css(", ".join(_HEADINGS)))
    return _Member(
        href=join(base, link.attributes.get("href")) if link is not None else None,
        title=title,
        title_length=len(text_of(title)) if title is not None else 0,
        date=_find_date_node(node),
        text_length=len(text_of(node)),
        headings=max(headings.values(), default=0),
        long_links=sum(len(text_of(found)) >= 20 for found in node.css("a[href]")),
    )


def _find_date_node(node: LexborNode) -> LexborNode | None:
    if (stated := node.css_first("time")) is not None:
        return stated
    for found in node.css("*"):
        children = list(found.iter())
        if not children and 6 <= len(text := text_of(found)) <= 60 and find_date(text):
            return found
    return None


def _score(nodes: Sequence[LexborNode], base: str) -> float:
    """How much a group looks like a list of items; 0 for what cannot be one."""
    step = max(1, len(nodes) // MEASURED)
    members = [_measure(node, base) for node in nodes[::step]]
    total = len(members)
    links = [member.href for member in members if member.href]
    titles = [member.title_length for member in members]
    distinct = len(set(links)) / total
    telling = sum(12 <= length <= 250 for length in titles) / total
    if distinct < MOSTLY or not any(titles) or telling == 0:
        return 0.0
    dated = sum(member.date is not None for member in members) / total
    headed = sum(member.headings > 0 for member in members) / total
    wordy = sum(
        member.text_length > 1.5 * length + 20 for member, length in zip(members, titles, strict=True)
    )
    score = log2(min(len(nodes), 64)) * (
        distinct + 3 * telling + 2 * dated + 1.5 * headed + 1.5 * wordy / total
    )
    # What holds several items is not an item.
    if sum(member.headings > 1 for member in members) > total / 2:
        score *= 0.3
    elif sum(member.long_links > 3 for member in members) > total / 2:
        score *= 0.5
    if nodes[0].tag in ("article", "li", "tr", "dt"):
        score *= 1.1  # of several elements around the same thing, the one that says what it is
    if not _classes(nodes[0]) and nodes[0].tag in ("div", "span", "td"):
        score *= 0.95
    return score


def _select_group(document: LexborHTMLParser, nodes: Sequence[LexborNode]) -> str | None:
    """The shortest selector that finds these elements and hardly any others."""
    wanted = {node.mem_id for node in nodes}
    best: tuple[float, str] | None = None
    for selector in _ways(nodes[0]):
        try:
            found = {node.mem_id for node in document.css(selector)}
        except SelectolaxError:
            continue
        if wanted == found:
            return selector
        missing, extra = len(wanted - found), len(found - wanted)
        cost = (missing * 2 + extra) / len(wanted)
        if cost <= 0.5 and (best is None or cost < best[0]):
            best = cost, selector
    return best[1] if best else None


def _ways(node: LexborNode) -> Iterator[str]:
    """Selectors that find an element, the shortest first: alone, then with what is around it."""
    own = _names(node)
    yield from own
    around: list[str] = []
    parent = node.parent
    steps = 0
    while parent is not None and parent.tag not in (None, "html", "-undef") and steps < 6:
        names = _names(parent)
        tail = " > ".join([*reversed(around), own[0]]) if around else own[0]
        yield from (f"{name} > {tail}" for name in names)
        yield from (f"{name} {own[0]}" for name in names if name != parent.tag)
        around.append(names[0])
        parent = parent.parent
        steps += 1


def _names(node: LexborNode) -> list[str]:
    """What to call one element: by its id or classes where it has lasting ones, else by its tag."""
    tag = node.tag or "*"
    classes = _classes(node)
    names = [f"{tag}.{name}" for name in classes]
    if len(classes) > 1:
        names.append(".".join((tag, *classes)))
    identity = node.attributes.get("id")
    if identity and _CLASS.match(identity) and not _UNSTABLE.search(identity):
        names.insert(0, f"#{identity}")
    return names or [tag]


def _select_parts(item: str, nodes: Sequence[LexborNode]) -> Selectors:
    """Selectors for the parts of the items, each where most items have it."""
    sample = list(nodes[:MEASURED])

    def title(node: LexborNode) -> LexborNode | None:
        heading = node.css_first(", ".join(_HEADINGS))
        return heading if heading is not None and text_of(heading) else link_of(node)

    return Selectors(
        item=item,
        title=_select_part(sample, title),
        link=_select_part(sample, link_of),
        date=_select_part(sample, _find_date_node),
        summary=_select_part(sample, _find_summary),
        image=_select_part(sample, lambda node: node.css_first("img[src], img[data-src]")),
    )


def _find_summary(node: LexborNode) -> LexborNode | None:
    """The longest paragraph that holds neither title nor date."""
    link = link_of(node)
    title = link.mem_id if link is not None else None

    def is_apart(part: LexborNode) -> bool:
        inner = part.css(", ".join((*_HEADINGS, "time", "a")))
        return not any(each.tag != "a" or each.mem_id == title for each in inner)

    found = [part for part in node.css("p, blockquote, dd") if len(text_of(part)) >= 30 and is_apart(part)]
    found = found or [
        part
        for part in node.css("div, span")
        if _classes(part) and len(text_of(part)) >= 60 and is_apart(part)
    ]
    return max(found, key=lambda part: len(text_of(part)), default=None)


def _select_part(nodes: Sequence[LexborNode], find: Callable[[LexborNode], LexborNode | None]) -> str | None:
    """The selector that leads to the part `find` finds, in most of the items that have it."""
    parts = [(node, part) for node in nodes if (part := find(node)) is not None]
    if len(parts) < len(nodes) / 2:
        return None
    tried: set[str] = set()
    best: tuple[int, str] | None = None
    for node, part in parts[:3]:
        for selector in _ways_inside(node, part):
            if selector in tried:
                continue
            tried.add(selector)
            hits = sum(
                (found := owner.css_first(selector)) is not None and found.mem_id == wanted.mem_id
                for owner, wanted in parts
            )
            if hits == len(parts):
                return selector
            if best is None or hits > best[0]:
                best = hits, selector
    return best[1] if best is not None and best[0] >= MOSTLY * len(parts) else None


def _ways_inside(node: LexborNode, part: LexborNode) -> Iterator[str]:
    names = [name for name in (*_names(part), part.tag or "*") if not name.startswith("#")]
    yield from dict.fromkeys(names)
    parent = part.parent
    if part.mem_id != node.mem_id and parent is not None and parent.mem_id != node.mem_id:
        around = [name for name in (*_names(parent), parent.tag or "*") if not name.startswith("#")]
        yield from (f"{outer} > {inner}" for outer in dict.fromkeys(around) for inner in dict.fromkeys(names))

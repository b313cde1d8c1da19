"""robots.txt: what a site asks of programs that read its pages (RFC 9309), and a check with a memory.

For collectors that scrape pages. Feeds and sitemaps are published for programs to read, and are fetched
without asking. `parse` is pure; `Robots` goes through the Fetcher like everything else.
"""

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from headwater.errors import FailureKind, FetchError
from headwater.fetch.message import Request, public_url

if TYPE_CHECKING:
    from headwater.fetch.client import Fetcher

PRODUCT = "headwater"

_MAX_BYTES = 512_000  # RFC 9309 asks for at least 500 KiB
_KEEP_SECONDS = 24 * 3600.0
_MOST_SITES = 1000
_MOST_RULES = 10_000
_LINE = re.compile(r"\A\s*([A-Za-z-]+)\s*:\s*([^#\r\n]*)")


@dataclass(frozen=True, slots=True)
class _Rule:
    """A path pattern, cut at its asterisks; `ends` when it must match to the end of the path."""

    allow: bool
    length: int
    parts: tuple[str, ...]
    ends: bool

    def matches(self, target: str) -> bool:
        first, *others = self.parts
        if not target.startswith(first):
            return False
        at = len(first)
        if not others:
            return not self.ends or at == len(target)
        last = others.pop()
        for part in others:
            # The first place is as good as any later one for what comes after it.
            found = target.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        if self.ends:
            return target.endswith(last) and len(target) - len(last) >= at
        return target.find(last, at) >= 0


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that hold for one program on one site."""

    rules: tuple[_Rule, ...] = ()
    crawl_delay_seconds: float | None = None
    sitemaps: tuple[str, ...] = ()

    def allows(self, target: str) -> bool:
        """Whether a path (with its query) may be read: the longest matching rule decides, allow in a tie."""
        target = _normal(target)
        if target == "/robots.txt":
            return True
        best: _Rule | None = None
        for rule in self.rules:
            longer = best is None or rule.length > best.length
            if not longer and not (best and rule.length == best.length and rule.allow and not best.allow):
                continue
            if rule.matches(target):
                best = rule
        return best is None or best.allow


ALLOW_ALL = Rules()


def parse(data: bytes, product: str = PRODUCT) -> Rules:
    """The rules for `product`: its own group or groups, else those for everyone. Never raises."""
    product = product.lower()
    own: list[tuple[str, str]] = []
    everyone: list[tuple[str, str]] = []
    sitemaps: list[str] = []
    named_own = False
    agents: list[str] = []
    in_rules = False
    for field, value in _lines(data):
        if field == "user-agent":
            if in_rules:
                agents, in_rules = [], False
            match = re.match(r"[A-Za-z_-]+|\*", value)
            agents.append(match[0].lower() if match else "")
            named_own = named_own or agents[-1] == product
        elif field == "sitemap":
            sitemaps.append(value)  # belongs to no group
        elif field in ("allow", "disallow", "crawl-delay"):
            in_rules = True
            if product in agents:
                own.append((field, value))
            if "*" in agents:
                everyone.append((field, value))
    return _make_rules(own if named_own else everyone, tuple(sitemaps))


def _make_rules(lines: list[tuple[str, str]], sitemaps: tuple[str, ...]) -> Rules:
    rules: list[_Rule] = []
    delay: float | None = None
    for field, value in lines:
        if field == "crawl-delay":
            if re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", value):
                delay = max(delay or 0.0, float(value))
        elif value and len(rules) < _MOST_RULES:  # an empty rule is not a rule
            rules.append(_make_rule(field == "allow", value))
    return Rules(tuple(rules), delay, sitemaps)


def _make_rule(allow: bool, path: str) -> _Rule:
    path = _normal(path if path.startswith(("/", "*")) else "/" + path)
    ends = path.endswith("$")
    return _Rule(allow, len(path), tuple((path[:-1] if ends else path).split("*")), ends)


def _lines(data: bytes) -> Iterator[tuple[str, str]]:
    text = data[:_MAX_BYTES].decode("utf-8-sig", "replace")
    for line in text.splitlines():
        match = _LINE.match(line)
        if match:
            yield match[1].lower(), match[2].strip()


def _normal(path: str) -> str:
    """Percent-encoding in one form, so that what means the same compares the same."""
    path = re.sub(r"%([0-9A-Fa-f]{2})", _normal_escape, path)
    return quote(path, safe="/%?&=*$+,;:@!'()~#[]|^{}\\\"<>` -._")


def _normal_escape(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if re.match(r"[A-Za-z0-9._~-]", character) else "%" + match[1].upper()


async def fetch_text(fetcher: "Fetcher", site: str) -> bytes:
    """The robots.txt of a site (`https://host`), empty where it has none; FetchError where that is not known."""
    try:
        response = await fetcher.get(
            Request(f"{site}/robots.txt", accept="text/plain, */*;q=0.1", max_bytes=4 * _MAX_BYTES)
        )
        return response.body
    except FetchError as error:
        status = error.http_status
        if status is None or not 400 <= status < 500 or status == 429:
            raise  # whether there are rules is not known, so nothing may be read yet (2.3.1.4)
        return b""  # there are none (2.3.1.3)


def check_rules(rules: Rules, url: str) -> None:
    """FetchError when the rules of its site do not let us read `url`."""
    parts = urlsplit(url)
    if not rules.allows((parts.path or "/") + ("?" + parts.query if parts.query else "")):
        raise FetchError(
            FailureKind.FORBIDDEN,
            "{url}: the site's robots.txt asks programs not to read this page.",
            url=public_url(url),
        )


def site_of(url: str) -> str:
    """The site whose rules hold for `url`."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


@dataclass(frozen=True, slots=True)
class Told:
    """What a site's robots.txt said, and when."""

    asked_at: float  # by the wall clock, which other processes have too
    text: str


class Robots:
    """Asks each site for its robots.txt at most once a day, through the Fetcher."""

    def __init__(
        self, fetcher: "Fetcher", *, product: str = PRODUCT, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._fetcher = fetcher
        self._product = product
        self._clock = clock
        self._known: OrderedDict[str, tuple[float, Rules, Told]] = OrderedDict()
        self._asking: dict[str, asyncio.Task[Rules]] = {}

    async def check(self, url: str) -> Rules:
        """The site's rules if they let us read `url`, else FetchError: FORBIDDEN, or why there are none."""
        rules = await self.rules(site_of(url))
        check_rules(rules, url)
        return rules

    async def rules(self, site: str) -> Rules:
        """The rules of a site (`https://host`), from memory if they are fresh."""
        known = self._known.get(site)
        if known is not None and known[0] > self._clock():
            return known[1]
        task = self._asking.get(site)
        if task is None:
            # A separate task: a caller that gives up waiting does not take the answer away from the others.
            task = self._asking[site] = asyncio.create_task(self._ask(site))
            task.add_done_callback(lambda _: self._asking.pop(site, None))
        return await asyncio.shield(task)

    async def _ask(self, site: str) -> Rules:
        text = (await fetch_text(self._fetcher, site))[:_MAX_BYTES].decode("utf-8-sig", "replace")
        return self._know(site, Told(time.time(), text), _KEEP_SECONDS)

    def told(self, site: str) -> Told | None:
        """What is known of a site, to be kept for another process."""
        known = self._known.get(site)
        return None if known is None else known[2]

    def recall(self, site: str, told: Told, now: float) -> None:
        """Take what was kept by another process for known, if it is fresh and nothing fresher is known."""
        seconds_left = told.asked_at + _KEEP_SECONDS - now
        if site not in self._known and 0 < seconds_left <= _KEEP_SECONDS:
            self._know(site, told, seconds_left)

    def _know(self, site: str, told: Told, seconds: float) -> Rules:
        rules = parse(told.text.encode(), self._product) if told.text else ALLOW_ALL
        self._known[site] = (self._clock() + seconds, rules, told)
        self._known.move_to_end(site)
        while len(self._known) > _MOST_SITES:
            self._known.popitem(last=False)
        return rules

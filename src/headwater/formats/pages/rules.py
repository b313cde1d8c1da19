"""The rules of known sites: what an address or a handle that people paste means, as data in `rules.toml`. Pure.

A rule offers sources, best first: each with its type, address and config. A rule whose `guess` is true may be wrong:
its offers count when they have been fetched. One that says `page` names a page whose feeds are meant; one with a
`lookup` names a JSON document in which the address of the feed stands.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from headwater.errors import InputError
from headwater.formats.pages.patterns import (
    LONGEST,
    Address,
    HostPattern,
    PathPattern,
    Piece,
    Values,
    may_take_long,
    read_address,
)
from headwater.language import Language, process_language

FEED: Final = "rss.feed"
_KEYS: Final = frozenset(
    ("name", "title", "zh", "hosts", "paths", "texts", "where", "guess", "page", "lookup", "offers")
)
_OFFER_KEYS: Final = frozenset(("title", "zh", "type", "url", "set", "config"))
_GIVEN: Final = frozenset(("address", "origin", "host"))
_TEMPLATE: Final = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class Offer:
    """A source that a rule proposes. `title` tells it from the others of its rule."""

    url: str
    type: str = FEED
    config: Mapping[str, Any] = field(default_factory=dict)
    title: str | None = None
    title_zh: str | None = None

    def title_in(self, language: Language | None = None) -> str | None:
        return (self.title_zh if (language or process_language()) == "zh" else None) or self.title


@dataclass(frozen=True, slots=True)
class Lookup:
    """A JSON document that names the feed, and the JMESPath expression that finds it there."""

    url: str
    feed: str


@dataclass(frozen=True, slots=True)
class Match:
    """What a text means by the first rule that fits."""

    rule: str
    title: str
    title_zh: str
    offers: tuple[Offer, ...] = ()
    is_guess: bool = False
    page: str | None = None
    lookup: Lookup | None = None

    def title_in(self, language: Language | None = None) -> str:
        return self.title_zh if (language or process_language()) == "zh" else self.title

    @property
    def is_page(self) -> bool:
        """Whether a request has to show what the sources are."""
        return self.is_guess or self.page is not None or self.lookup is not None


class Rule:
    """One rule of the table."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        _refuse_unknown(table, _KEYS, str(table.get("name")))
        self.name = str(table["name"])
        self.title, self.title_zh = str(table["title"]), str(table.get("zh") or table["title"])
        where: dict[str, str] = dict(table.get("where", {}))
        for allowed in where.values():
            re.compile(allowed)
            if may_take_long(allowed):
                raise ValueError(f"{self.name}: {allowed} may take too long: repeat nothing that repeats")
        self._texts = [Piece(each, where, re.IGNORECASE) for each in table.get("texts", ())]
        self._hosts = [HostPattern(each, where) for each in table.get("hosts", ())]
        self._paths = [PathPattern(each, where) for each in table.get("paths", ())]
        self._guess = bool(table.get("guess", False))
        self._page: str | None = table.get("page")
        self._lookup: Mapping[str, str] | None = table.get("lookup")
        self._offers: list[Mapping[str, Any]] = list(table.get("offers", ()))
        for offer in self._offers:
            _refuse_unknown(offer, _OFFER_KEYS, self.name)
            self._check_blanks(offer["url"], table)

    def _check_blanks(self, template: str, table: Mapping[str, Any]) -> None:
        """ValueError for a blank that none of the patterns fills."""
        written = str([table.get(key) for key in ("hosts", "paths", "texts")])
        for blank in _TEMPLATE.findall(template):
            if blank not in _GIVEN and not re.search(rf"\{{{blank}(?:\.\.\.)?\}}", written):
                raise ValueError(f"{self.name}: no pattern has the blank {{{blank}}}")

    def match_text(self, text: str) -> Match | None:
        """What a handle means."""
        found = next((values for each in self._texts if (values := each.match(text)) is not None), None)
        return None if found is None else self._fill(found, {"address": text})

    def match_address(self, address: Address) -> Match | None:
        """What an address means."""
        host = self._match_host(address)
        for path in self._paths if host is not None else ():
            if (values := path.match(address)) is not None and host is not None:
                given = {"address": address.text, "origin": address.origin, "host": address.host}
                return self._fill(host | values, given)
        return None

    def _match_host(self, address: Address) -> Values | None:
        if not self._hosts:
            return {}
        return next(
            (values for each in self._hosts if (values := each.match(address.host)) is not None), None
        )

    def _fill(self, values: Values, given: Values) -> Match:
        """`given` are values that are addresses already."""
        quoted = {name: quote(value, safe="/@:,~") for name, value in values.items()}
        values, quoted = values | given, quoted | given
        lookup = self._lookup
        offers = [self._make_offer(offer, quoted, values) for offer in self._offers]
        # A choice that was pasted comes first.
        offers.sort(key=lambda offer: offer.type != FEED or offer.url != given["address"])
        return Match(
            self.name,
            self.title,
            self.title_zh,
            tuple(offers),
            self._guess,
            _fill(self._page, quoted) if self._page else None,
            Lookup(_fill(lookup["url"], quoted), lookup["feed"]) if lookup else None,
        )

    def _make_offer(self, offer: Mapping[str, Any], quoted: Values, values: Values) -> Offer:
        url = _fill(offer["url"], quoted)
        if changed := offer.get("set"):
            url = _set_parameters(url, {name: _fill(value, values) for name, value in changed.items()})
        config = _fill_config(offer.get("config", {}), values)
        return Offer(url, offer.get("type", FEED), config, offer.get("title"), offer.get("zh"))


class AddressRules:
    """A table of rules; of several that fit the first one counts."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)

    @classmethod
    def read(cls, text: str) -> Self:
        """The rules of a TOML document; InputError says what is wrong with it."""
        try:
            return cls(Rule(each) for each in tomllib.loads(text).get("rule", []))
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, re.error) as error:
            problem = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
            raise InputError("the address rules cannot be read: {problem}", problem=problem) from None

    def __add__(self, other: "AddressRules") -> "AddressRules":
        return AddressRules((*self.rules, *other.rules))

    def find(self, text: str) -> Match | None:
        """What a pasted text means; None when no rule knows it.

        A text with `${` is left alone: a rule's config might take a piece of it for the name of a secret.
        """
        text = text.strip()
        if not text or len(text) > LONGEST or "${" in unquote(text):
            return None
        handle = next((found for rule in self.rules if (found := rule.match_text(text))), None)
        address = read_address(text) if handle is None else None
        if address is None:
            return handle
        return next((found for rule in self.rules if (found := rule.match_address(address))), None)


def _refuse_unknown(table: Mapping[str, Any], known: frozenset[str], name: str) -> None:
    if unknown := sorted(table.keys() - known):
        raise ValueError(f"{name}: there is no key {unknown[0]}")


def _fill(template: str, values: Mapping[str, str]) -> str:
    return _TEMPLATE.sub(lambda blank: values[blank[1]], template)


def _fill_config(config: Any, values: Mapping[str, str]) -> Any:
    """A config with its blanks filled. Braces that are not a blank, as in `${NAME}`, stay."""
    if isinstance(config, Mapping):
        return {key: _fill_config(each, values) for key, each in config.items()}
    if isinstance(config, list):
        return [_fill_config(each, values) for each in config]
    if isinstance(config, str):
        return _TEMPLATE.sub(lambda blank: values.get(blank[1], blank[0]), config)
    return config


def _set_parameters(url: str, changed: Mapping[str, str]) -> str:
    parts = urlsplit(url)
    kept = [(name, value) for name, value in parse_qsl(parts.query, True) if name not in changed]
    return urlunsplit(parts._replace(query=urlencode([*kept, *changed.items()])))


@cache
def own_rules() -> AddressRules:
    """The rules that come with Headwater."""
    return AddressRules.read(Path(__file__).with_name("rules.toml").read_text(encoding="utf-8"))


def known_feeds(url: str) -> list[str]:
    """Feed addresses for a page on a site whose rule is known, best first; empty for all others."""
    found = own_rules().find(url) if url.strip().lower().startswith(("http://", "https://")) else None
    if found is None or found.is_guess:
        return []
    return [offer.url for offer in found.offers if offer.type == FEED]


def choices_of(feed: str, rules: AddressRules) -> list[Offer]:
    """The choices that a rule has for a feed that was found, itself first; the feed alone where there are none."""
    found = rules.find(feed)
    if found is None or found.is_guess or not found.offers or found.offers[0].url != feed:
        return [Offer(feed)]
    return list(found.offers)

"""Patterns of addresses and handles: `youtube.com/channel/UC{id}/...`, `r/{name}`. Pure.

A pattern is matched piece by piece (labels of the host, segments of the path, query parameters), so that the time it
takes grows with the length of the address alone.

    {name}      a part of one piece: any characters, or those that `where` allows
    {name...}   one or more segments of a path
    ...         at the end of a path: any segments, or none
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

LONGEST: Final = 2_000  # characters of what people paste
MOST_PARAMETERS: Final = 100
_BLANK: Final = re.compile(r"\{([a-z_]+)\}")
_MANY: Final = re.compile(r"\{([a-z_]+)\.\.\.\}\Z")
_ANY: Final = r"[^/\s]+?"
_FEED_FILE: Final = re.compile(r"\.(?:rss|atom|rdf|xml|json)\Z", re.IGNORECASE)
_FEED_PLACE: Final = re.compile(r"/(?:feed|feeds|rss|rss2|atom)(?:/|\Z)", re.IGNORECASE)

_ESCAPED_OR_CLASS: Final = re.compile(r"\\.|\[\^?\]?[^\]]*\]", re.DOTALL)
_LAZY: Final = re.compile(r"([*+?}])[+?]")
_INNER_GROUP: Final = re.compile(r"\((?:\?(?:P<\w+>|<?[:=!>]))?([^()]*)\)([*+]|\{\d*,\d*\})?")
_REPEAT: Final = re.compile(r"[*+]|\{\d*,\d*\}")
MOST_REPEATS: Final = 2  # side by side: three take the cube of the text's length

Values = dict[str, str]


def may_take_long(expression: str) -> bool:
    """Whether an expression repeats what repeats or has choices, or repeats often: that may take exponential time."""
    if len(expression) > LONGEST:
        return True
    text = _LAZY.sub(r"\1", _ESCAPED_OR_CLASS.sub("x", expression))
    while group := _INNER_GROUP.search(text):
        inside = _count_repeats(group[1])
        if group[2] and (inside or "|" in group[1]):
            return True
        text = f"{text[: group.start()]}{'x*' * inside or 'x'}{group[2] or ''}{text[group.end() :]}"
    return _count_repeats(text) > MOST_REPEATS


def _count_repeats(text: str) -> int:
    """The repetitions side by side in the choice that has most."""
    return max(len(_REPEAT.findall(choice)) for choice in text.split("|"))


@dataclass(frozen=True, slots=True)
class Address:
    """An address as rules see it: without `www.`, its pieces decoded."""

    text: str
    origin: str
    host: str
    segments: tuple[str, ...]
    query: Mapping[str, str]

    @property
    def is_feed(self) -> bool:
        """Whether it looks like a feed's own address, which needs no rule."""
        return bool(self.segments and _FEED_FILE.search(self.segments[-1])) or (
            self.query.get("format") == "atom"
        )

    @property
    def is_in_feed_place(self) -> bool:
        """Whether a segment says that a feed is there."""
        return bool(_FEED_PLACE.search("/" + "/".join(self.segments)))


def read_address(text: str) -> Address | None:
    """The address in a text that has no blanks; None where it is none. A missing scheme is https."""
    if not text or len(text) > LONGEST or re.search(r"[\s\x00-\x1f]", text):
        return None
    written = text if "://" in text else f"https://{text}"
    try:
        parts = urlsplit(written)
        host = (parts.hostname or "").lower().rstrip(".")
        _ = parts.port
    except ValueError:
        return None
    if parts.scheme.lower() not in ("http", "https") or not host:
        return None
    return Address(
        written,
        f"{parts.scheme.lower()}://{parts.netloc.rpartition('@')[2]}",
        host.removeprefix("www."),
        tuple(unquote(segment) for segment in parts.path.split("/") if segment),
        _read_query(parts),
    )


def _read_query(parts: SplitResult) -> Mapping[str, str]:
    try:
        pairs = parse_qsl(parts.query, max_num_fields=MOST_PARAMETERS)
    except ValueError:  # more parameters than any address has
        return {}
    return dict(reversed(pairs))


class Piece:
    """One label, segment or value of a pattern, with its blanks."""

    __slots__ = ("_blank", "_expression", "_flags", "_pattern", "_where")

    def __init__(
        self, pattern: str, where: Mapping[str, str], flags: re.RegexFlag = re.NOFLAG, blank: str = _ANY
    ) -> None:
        self._pattern, self._where, self._flags, self._blank = pattern, where, flags, blank
        self._expression: re.Pattern[str] | None = None

    @property
    def expression(self) -> re.Pattern[str]:
        """Compiled when it is first needed: of a long table most are never."""
        if self._expression is None:
            parts = enumerate(_BLANK.split(self._pattern))
            written = (self._group(part) if place % 2 else re.escape(part) for place, part in parts)
            self._expression = re.compile("".join(written), self._flags)
        return self._expression

    def _group(self, name: str) -> str:
        return f"(?P<{name}>{self._where.get(name, self._blank)})"

    def match(self, text: str) -> Values | None:
        if "{" not in self._pattern:
            return {} if text == self._pattern else None
        found = self.expression.fullmatch(text)
        return found.groupdict() if found else None


class HostPattern:
    """`youtube.com` or `{blog}.substack.com`; `*.example.org` is every host below it."""

    __slots__ = ("_labels", "_suffix")

    def __init__(self, pattern: str, where: Mapping[str, str]) -> None:
        self._suffix = pattern[1:] if pattern.startswith("*.") else None
        self._labels = [Piece(label, where, re.IGNORECASE) for label in pattern.split(".")]

    def match(self, host: str) -> Values | None:
        if self._suffix is not None:
            return {} if host.endswith(self._suffix) and host != self._suffix[1:] else None
        labels = host.split(".")
        return _match_all(self._labels, labels) if len(labels) == len(self._labels) else None


class PathPattern:
    """`/channel/UC{id}/...` or `/playlist?list={id}`."""

    __slots__ = ("_after", "_before", "_is_feed", "_many", "_open", "_query")

    def __init__(self, pattern: str, where: Mapping[str, str]) -> None:
        path, _, query = pattern.partition("?")
        segments = [segment for segment in path.split("/") if segment]
        self._open = segments[-1:] == ["..."]
        segments = segments[: len(segments) - self._open]
        place = next((number for number, each in enumerate(segments) if _MANY.match(each)), None)
        many = None if place is None else _MANY.match(segments[place])
        self._many = many[1] if many else None
        self._before = [Piece(each, where) for each in segments[:place]]
        self._after = [] if place is None else [Piece(each, where) for each in segments[place + 1 :]]
        self._query = {
            name: Piece(value, where, blank=".+") for name, value in parse_qsl(query, keep_blank_values=True)
        }
        self._is_feed = bool(_FEED_FILE.search(path))

    def match(self, address: Address) -> Values | None:
        """The values of its blanks. A feed's own address is left alone, unless the pattern is for feeds."""
        if not self._is_feed and (address.is_feed or (self._open and address.is_in_feed_place)):
            return None
        values = self._match_path(address.segments)
        for name, piece in self._query.items():
            found = piece.match(address.query.get(name, "")) if values is not None else None
            values = None if found is None or values is None else values | found
        return values

    def _match_path(self, segments: Sequence[str]) -> Values | None:
        if self._many is not None:
            return self._match_many(segments)
        count = len(self._before)
        fits = len(segments) >= count if self._open else len(segments) == count
        return _match_all(self._before, segments[:count]) if fits else None

    def _match_many(self, segments: Sequence[str]) -> Values | None:
        """What stands before and after the many segments is fixed; where the end is open, the first end counts."""
        first, count = len(self._before), len(self._after)
        start = _match_all(self._before, segments[:first]) if len(segments) > first else None
        last = [len(segments) - count] if not self._open else range(first + 1, len(segments) - count + 1)
        for end in last if start is not None else ():
            rest = _match_all(self._after, segments[end : end + count]) if end > first else None
            if rest is not None and start is not None:
                return {**start, **rest, str(self._many): "/".join(segments[first:end])}
        return None


def _match_all(pieces: Sequence[Piece], texts: Sequence[str]) -> Values | None:
    values: Values = {}
    for piece, text in zip(pieces, texts, strict=True):
        found = piece.match(text)
        if found is None:
            return None
        values |= found
    return values

"""The nouns of Headwater, as frozen dataclasses that every room shares.

Times inside Headwater are seconds since the Unix epoch as floats, in UTC by nature; names end in `_at`.
They become datetimes only where people or other programs read them. Nothing here knows a database, the
network or a clock.
"""

from collections.abc import Mapping
from dataclasses import field, fields
from operator import attrgetter
from typing import Any, Final, Literal, get_args
from urllib.parse import urlsplit, urlunsplit

from headwater.errors import FailureKind, InputError, Text
from headwater.language import Language
from headwater.markup import LONGEST_TEXT
from headwater.records import dataclass

Json = Mapping[str, Any]

FOLDER_SEPARATOR: Final = " / "  # between the names of nested folders
Outcome = Literal["new", "unchanged", "failed", "skipped"]
# ok; needs_attention: its credentials are refused, or it redirects for good to where they are not sent; paused / error:
# failing for long, probed daily / weekly; retired: its publisher says it is gone.
SourceStatus = Literal["ok", "needs_attention", "paused", "error", "retired"]


@dataclass(frozen=True, slots=True)
class Validators:
    """What the publisher gave us to ask "has it changed?", byte for byte as received."""

    etag: bytes | None = None
    last_modified: bytes | None = None
    body_hash: bytes | None = None


@dataclass(frozen=True, slots=True)
class Hints:
    """What the publisher says about its times. Data only; `schedule` gives it meaning."""

    max_age_seconds: float | None = None  # Cache-Control or Expires, less Age
    retry_after_seconds: float | None = None
    ttl_seconds: float | None = None  # RSS ttl
    update_period_seconds: float | None = None  # sy:updatePeriod / sy:updateFrequency
    skip_hours: tuple[int, ...] = ()  # UTC
    skip_days: tuple[int, ...] = ()  # Monday is 0
    utc_offset_seconds: float | None = None  # of the dates it states; None: unknown, or UTC


NO_HINTS = Hints()  # most publishers give none: this one, so that they are told at a glance


@dataclass(frozen=True, slots=True)
class Enclosure:
    url: str
    media_type: str | None = None
    length: int | None = None
    title: str | None = None
    duration_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One thing a source yielded, ready to be stored. HTML in it is raw: sanitise before showing it."""

    external_id: str  # what tells it from the source's other items, for ever
    url: str | None = None
    title: str = ""  # plain text
    author: str | None = None
    summary: str | None = None
    content: str | None = None
    published_at: float | None = None  # seconds since 1970
    updated_at: float | None = None  # likewise
    language: str | None = None
    image_url: str | None = None
    comments_url: str | None = None
    categories: tuple[str, ...] = ()
    enclosures: tuple[Enclosure, ...] = ()
    # As they were when the item was taken; that they change makes no new version of it.
    score: int | None = None
    comments_count: int | None = None
    cut: bool = False  # something of it was left out, because it was too big
    # What it says beyond that, by the keys of `formats.feeds.extras.vocabulary`: of a podcast season, persons, …
    extras: Json | None = field(default=None, hash=False)


ResultKind = Literal[
    "full_text",
    "summary",
    "translation",
    "transcript",
    "tags",
    "score",
    "analysis",
    "media",
    "fingerprint",
]
RESULT_KINDS: tuple[ResultKind, ...] = get_args(ResultKind)
SEVERAL_NAMES: tuple[ResultKind, ...] = ("translation", "analysis")  # kinds of which an item has several
MOST_TAGS = 50  # of an item
LONGEST_TAG = 100


@dataclass(frozen=True, slots=True)
class Result:
    """What a step made of an item. An item has one current result of each kind and name.

    `name` is a translation's language or an analysis' own name. `data` is JSON: a transcript's segments, a list of
    tags, `{"score": 7.5, "reason": …}`, an answer that fits a schema.
    """

    kind: ResultKind
    name: str = ""
    body: str | None = None
    format: Literal["text", "html"] = "text"
    language: str | None = None
    data: Any = field(default=None, hash=False)

    @property
    def key(self) -> str:
        """How the result is named everywhere: `summary`, `translation:zh`."""
        return f"{self.kind}:{self.name}" if self.name else self.kind


def read_result_key(key: str) -> tuple[ResultKind, str]:
    """Kind and name of `summary` or `translation:zh`; InputError when there is no such kind."""
    kind, _, name = key.partition(":")
    if kind not in RESULT_KINDS or (name and kind not in SEVERAL_NAMES):
        raise InputError(
            "there is no result {key}; there are {known}", key=key, known=", ".join(RESULT_KINDS)
        )
    return kind, name


def read_tags(data: Any) -> list[str]:
    """Tags as they are stored and looked for: in small letters, each once."""
    given = data if isinstance(data, list) else []
    tags = (fold_tag(tag) for tag in given if isinstance(tag, str))
    return list(dict.fromkeys(tag for tag in tags if tag))[:MOST_TAGS]


def fold_tag(tag: str) -> str:
    return " ".join(tag.replace("\0", "").split()).casefold()[:LONGEST_TAG]


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A result as it is stored, with the run and step that made it."""

    id: int
    item_id: int
    item_version: int  # what it was made of
    result: Result
    made_at: float
    replaced_at: float | None
    run_id: int | None
    template_id: int | None
    step_index: int | None
    step_type: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredItem(Item):
    """An item as it is stored, with the source it came from.

    A field with the name of a column of `items` is read from it; the others are packed into the column `extra`.
    """

    id: int
    source_id: int
    source_name: str
    source_type: str
    item_at: float  # published, else first seen: what lists are sorted by
    first_seen_at: float
    date_invented: bool = False  # its own date is missing or impossible
    version: int = 1
    status: str = "NEW"  # ANALYZED once a pipeline has completed
    results: Mapping[str, StoredResult] = field(default_factory=dict, hash=False)  # the current ones, by key

    @property
    def is_cut(self) -> bool:
        """Whether parts were left out because they were too big, when it was stored or when it was read."""
        return self.cut or any(
            text is not None and len(text) >= LONGEST_TEXT for text in (self.summary, self.content)
        )

    @property
    def result_keys(self) -> tuple[str, ...]:
        return tuple(self.results)

    @property
    def pipeline_score(self) -> float | None:
        """The score that a pipeline gave it."""
        scored = self.results.get("score")
        return None if scored is None else float(scored.result.data["score"])

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags that a pipeline gave it."""
        tagged = self.results.get("tags")
        return () if tagged is None else tuple(read_tags(tagged.result.data))


@dataclass(frozen=True, slots=True)
class ListedItem:
    """What a list shows of an item: columns of `items` by their names, without its texts, and its source's name."""

    id: int
    source_id: int
    source_name: str
    url: str | None
    title: str
    item_at: float
    first_seen_at: float
    version: int
    result_keys: tuple[str, ...] = ()  # what pipelines made of it
    pipeline_score: float | None = None
    tags: tuple[str, ...] = ()


RepairKind = Literal[
    "wrapped",
    "encoding",
    "double_encoding",
    "characters",
    "ill_formed",
    "misplaced_items",
    "ill_formed_json",
    "json_version",
]


_REPAIRS: dict[RepairKind, str] = {
    "wrapped": "The feed was inside of something else, which was removed: {detail}.",
    "encoding": "The character encoding is not what the document says; it was read as {detail}.",
    "double_encoding": "The text was encoded twice ({detail}); it was decoded twice.",
    "characters": "Characters or entities that XML does not allow were repaired.",
    "ill_formed": "The XML is not well-formed; it was read as far as possible. {detail}",
    "misplaced_items": "No item stands where the format puts items; {detail} were found elsewhere in the document.",
    "ill_formed_json": "The JSON is damaged; it was read as far as possible. {detail}",
    "json_version": "The version of JSON Feed is unknown ({detail}); it was read as 1.1.",
}


@dataclass(frozen=True, slots=True)
class Repair:
    """What was wrong with a document and had to be repaired to read it."""

    kind: RepairKind
    line: int | None = None
    detail: str | None = None

    def render(self, language: Language | None = None) -> str:
        """What, and where, in a sentence."""
        text = Text(_REPAIRS[self.kind], detail=self.detail or "").render(language).strip()
        return (
            text
            if self.line is None
            else Text("Line {line}: {text}", line=self.line, text=text).render(language)
        )


@dataclass(frozen=True, slots=True)
class SourceMetadata:
    """What a source says of itself. A None leaves what is stored as it is."""

    title: str | None = None
    description: str | None = None
    site_url: str | None = None
    language: str | None = None
    icon_url: str | None = None
    details: Json | None = (
        None  # what its document says beyond that: of a podcast, its categories, persons, …
    )
    repairs: tuple[Repair, ...] | None = None  # what was wrong with the document that was read last


NO_METADATA = SourceMetadata()


@dataclass(frozen=True, slots=True)
class Hub:
    """Who pushes what a source publishes to the subscribers of its topic (WebSub)."""

    url: str
    topic: str


@dataclass(frozen=True, slots=True)
class SourceStats:
    """The numbers of one `source_stats` row, without its keys. Times are whole seconds."""

    frequency_type: str = "daily"
    cadence: str = "P2"
    avg_publish_hour: float | None = None
    std_publish_hour: float | None = None
    next_due_at: int = 0
    last_check_at: int = 0
    last_article_at: int = 0
    fail_count: int = 0
    backoff_until: int = 0
    last_error: str | None = None
    check_count: int = 0
    hit_count: int = 0
    created_at: int = 0
    updated_at: int = 0


@dataclass(frozen=True, slots=True)
class Source:
    """Something on the web that yields items."""

    id: int
    name: str
    type: str
    url: str
    config: Json = field(default_factory=dict)
    is_active: bool = True
    schedule_enabled: bool = True
    is_deleted: bool = False
    policy: str | None = None
    pipeline_template_id: int | None = None
    folder: str | None = None
    metadata: SourceMetadata = NO_METADATA
    validators: Validators = Validators()
    moved_to: str | None = None
    moved_count: int = 0
    status: SourceStatus = "ok"
    is_late: bool = False  # the new items of its last productive visit were found later than its target
    created_at: float = 0.0
    next_fetch_at: float | None = None
    plan_reason: Json = field(default_factory=dict)
    policy_state: bytes | None = None
    hints: Hints = NO_HINTS  # what its document said when it was last read
    stats: SourceStats | None = None  # read with a claim
    read_elsewhere: bool = False  # whether items of it were read before its first visit; read with a claim
    last_fetched_at: float | None = None
    last_entry_at: float | None = None
    fetch_count: int = 0
    hit_count: int = 0
    fetch_error_count: int = 0
    consecutive_failures: int = 0
    last_error: str | None = None
    last_error_kind: FailureKind | None = None
    failing_since_at: float | None = None  # when the first visit failed since the last that worked
    # Of what its plan was made; None: of what does not hold any more, so that it is to be planned again.
    planned_from: int | None = 0
    lease_no: int = 0
    lease_until: float | None = None  # read with a claim


_FIELDS = tuple(each.name for each in fields(Source))
_PLACES = {name: place for place, name in enumerate(_FIELDS)}
_values = attrgetter(*_FIELDS)


def changed_source(source: Source, changes: Mapping[str, Any]) -> Source:
    """`source` with other values in some fields. What `dataclasses.replace` does, in a third of its time."""
    values = list(_values(source))
    for name, value in changes.items():
        values[_PLACES[name]] = value
    return Source(*values)


def url_key(url: str) -> str:
    """What two spellings of one address share: two sources of a type with the same key are the same source.

    Scheme, case of the host, usual port, fragment and last slash make no difference.
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    port = f":{parts.port}" if parts.port and parts.port not in (80, 443) else ""
    user = parts.netloc.rpartition("@")[0]
    netloc = f"{user}@{host}{port}" if user else f"{host}{port}"
    return urlunsplit(("", netloc, parts.path.rstrip("/"), parts.query, ""))


Role = Literal["admin", "reader"]


@dataclass(frozen=True, slots=True)
class User:
    """A person with an account."""

    id: int
    name: str  # case-folded
    role: Role
    email: str | None = None
    preferences: Json = field(default_factory=dict, hash=False)
    is_disabled: bool = False
    has_password: bool = False
    created_at: float = 0.0
    last_seen_at: float | None = None
    oidc_subject: str | None = None

    @property
    def is_admin(self) -> bool:
        return self.role == "admin"


@dataclass(frozen=True, slots=True)
class Observation:
    """What one visit showed, in the only form a policy ever sees it.

    `item_times` are the publication times that the new items state, which may lie ahead by up to a day; where the
    date is missing or cannot be meant, exactly `at`. On a source's first visit they are its history.
    """

    at: float
    outcome: Outcome
    item_times: tuple[float, ...] = ()
    items_found: int = 0
    first: bool = False
    overflow: bool = False
    hints: Hints = NO_HINTS


@dataclass(frozen=True, slots=True)
class Plan:
    """When the next visit is due, and why: `reason` is data that can be told in either language."""

    next_at: float
    reason: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Visit:
    """The record of one attempt to collect from a source."""

    source_id: int
    started_at: float
    finished_at: float
    outcome: Outcome
    items_found: int = 0
    items_new: int = 0
    items_updated: int = 0
    overflow: bool = False
    http_status: int | None = None
    requests: int = 0
    bytes_received: int = 0
    error_kind: FailureKind | None = None
    error_message: str | None = None

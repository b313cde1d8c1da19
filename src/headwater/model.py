"""The nouns of Headwater, as frozen dataclasses that every room shares.

Times inside Headwater are seconds since the Unix epoch as floats, in UTC by nature; names end in `_at`.
They become datetimes only where people or other programs read them. Nothing here knows a database, the
network or a clock.
"""

from collections.abc import Mapping
from dataclasses import field, fields
from operator import attrgetter
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from headwater.errors import FailureKind
from headwater.records import dataclass

Json = Mapping[str, Any]

Outcome = Literal["new", "unchanged", "failed", "skipped"]
# ok; needs_attention: its credentials are refused; paused / error: failing for long, probed daily / weekly;
# retired: its publisher says it is gone.
SourceStatus = Literal["ok", "needs_attention", "paused", "error", "retired"]


@dataclass(frozen=True, slots=True)
class Validators:
    """What the publisher gave us to ask "has it changed?", byte for byte as received."""

    etag: bytes | None = None
    last_modified: bytes | None = None
    body_hash: bytes | None = None


@dataclass(frozen=True, slots=True)
class Hints:
    """What the publisher says about when to come back. Data only; `schedule.hints` gives it meaning."""

    max_age_seconds: float | None = None  # Cache-Control or Expires, less Age
    retry_after_seconds: float | None = None
    ttl_seconds: float | None = None  # RSS ttl
    update_period_seconds: float | None = None  # sy:updatePeriod / sy:updateFrequency
    skip_hours: tuple[int, ...] = ()  # UTC
    skip_days: tuple[int, ...] = ()  # Monday is 0


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

    external_id: str
    url: str | None = None
    title: str = ""
    author: str | None = None
    summary: str | None = None
    content: str | None = None
    published_at: float | None = None
    updated_at: float | None = None
    language: str | None = None
    image_url: str | None = None
    comments_url: str | None = None
    categories: tuple[str, ...] = ()
    enclosures: tuple[Enclosure, ...] = ()
    # As they were when the item was taken; that they change makes no new version of it.
    score: int | None = None
    comments_count: int | None = None


@dataclass(frozen=True, slots=True)
class SourceMetadata:
    """What a source says of itself. A None leaves what is stored as it is."""

    title: str | None = None
    description: str | None = None
    site_url: str | None = None
    language: str | None = None
    icon_url: str | None = None


NO_METADATA = SourceMetadata()


@dataclass(frozen=True, slots=True)
class Hub:
    """Who pushes what a source publishes to those who subscribe to its topic (WebSub)."""

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
    created_at: float = 0.0
    next_fetch_at: float | None = None
    plan_reason: Json = field(default_factory=dict)
    policy_state: bytes | None = None
    hints: Hints = NO_HINTS  # what its document said when it was last read
    stats: SourceStats | None = None  # read with a claim
    read_elsewhere: bool = (
        False  # whether somebody has read items of it before its first visit; read with a claim
    )
    last_fetched_at: float | None = None
    last_entry_at: float | None = None
    fetch_count: int = 0
    hit_count: int = 0
    fetch_error_count: int = 0
    consecutive_failures: int = 0
    last_error: str | None = None
    last_error_kind: FailureKind | None = None
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


@dataclass(frozen=True, slots=True)
class Observation:
    """What one visit showed, in the only form a policy ever sees it.

    `item_times` are the publication times of the new items (when the publisher's date is missing or cannot be
    right, the time we first saw the item). On a source's first visit they are its history.
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

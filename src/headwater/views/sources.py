"""A source: what everyone may see of it, all that is known of it, its plan, and its line in the collector's status."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from headwater.collectors.base import shown_config
from headwater.collectors.types import alias_of, config_model_of
from headwater.language import Language
from headwater.model import Json as JsonObject
from headwater.model import Repair, Source, SourceMetadata
from headwater.schedule.explain import explain_next
from headwater.states import SourceState, find_state, needs_attention, next_visit_at, tell_advice
from headwater.store.collecting.push import Subscription
from headwater.store.reports.fleet import FleetSource
from headwater.store.reports.statistics import SourceStatistics
from headwater.views.shape import Json, Shape, Time, with_example
from headwater.views.statistics import EXAMPLE as STATISTICS
from headwater.views.statistics import SourceStatisticsView, source_statistics_json
from headwater.wording import iso

STATE = (
    "pending: not visited yet; on_time; late: its new items were found later than its target; failing: its last "
    "visits failed; paused: by a person; gone: its publisher says so (410); removed."
)
_NEXT_VISIT = "When its next visit is planned; null: none is (see `state`)."
_FAILING_SINCE = "When the first visit failed since the last that worked; null: it does not fail."
_NEEDS_ATTENTION = "True: only a person can help: credentials are refused, or it has moved."
_REPAIRS = "What was wrong with the document that was read last."
_STATISTICS = "What its visits have shown; null: not visited yet."
_LAST_ERROR = "What went wrong at the last visit; null: nothing."


class PublicSourceView(BaseModel):
    """What a source is: all that is shown without a key."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: public_source_json(EXAMPLE))

    id: int
    name: str
    type: str = Field(description="The type's two-part name.")
    url: str
    folder: str | None
    title: str | None = Field(description="What it calls itself.")
    site_url: str | None = Field(description="The page it belongs to.")


class RepairView(BaseModel):
    """What was wrong with a document, and was repaired to read it."""

    kind: str = Field(
        description="wrapped, encoding, double_encoding, characters, ill_formed, misplaced_items, ill_formed_json,"
        " json_version."
    )
    line: int | None = Field(description="Where; null: everywhere, or unknown.")
    detail: str | None
    text: str = Field(description="The same as a sentence.")


class SourceView(PublicSourceView):
    """A source with all that is known of it."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: source_json(EXAMPLE, _INTERVALS))

    description: str | None
    language: str | None
    icon_url: str | None
    details: dict[str, Any] | None = Field(
        description="What else its document says: of a podcast, its categories, persons, …; null: nothing."
    )
    repairs: list[RepairView] = Field(description=_REPAIRS)
    config: dict[str, Any] = Field(description="Its config; secrets are shown as ***.")
    policy: str | None = Field(description="Its own policy; null: the default.")
    pipeline_template_id: int | None = Field(
        description="The first template that is attached to the source itself; null: none."
        " /sources/{id}/pipelines lists all that run for it."
    )
    is_active: bool = Field(
        description="False: failing for long or gone, so it is only visited now and then."
    )
    schedule_enabled: bool = Field(description="False: paused by a person.")
    is_deleted: bool = Field(description="True: removed; it can be restored.")
    state: SourceState = Field(description=STATE)
    needs_attention: bool = Field(description=_NEEDS_ATTENTION)
    failing_since_at: Time | None = Field(description=_FAILING_SINCE)
    status: str = Field(
        description=(
            "What failures have led to: ok, needs_attention, paused (visited daily), error (visited weekly), "
            "retired (gone). `state` is the plain answer."
        )
    )
    fetch_interval_minutes: int | float = Field(description="Its own fixed interval, else its type's.")
    next_fetch_at: Time | None = Field(description=_NEXT_VISIT)
    plan_reason: dict[str, Any] = Field(description="Why the next visit is planned for then, as numbers.")
    last_fetched_at: Time | None = Field(description="When it was last visited; null: never.")
    last_entry_at: Time | None = Field(description="When its newest item was published.")
    created_at: Time
    fetch_count: int = Field(description="All visits so far.")
    hit_count: int = Field(description="The visits that found something new.")
    fetch_error_count: int = Field(description="The visits that failed.")
    consecutive_failures: int = Field(description="How many visits failed since the last that did not.")
    last_error: str | None = Field(description=_LAST_ERROR)
    last_error_kind: str | None = Field(description="The same as one word.")


class PushView(BaseModel):
    """What a source's hub does for it (WebSub)."""

    hub: str
    topic: str
    state: str
    lease_ends_at: Time | None
    last_pushed_at: Time | None
    pushes: int = Field(description="Deliveries so far.")
    forged: int = Field(description="Deliveries with a wrong signature.")
    missed: int = Field(description="Times that a visit found what the hub had not delivered.")
    last_error: str | None


class WholeSourceView(SourceView):
    """A source with all that is known of it, its hub and its statistics."""

    model_config: ClassVar[ConfigDict] = with_example(
        lambda: whole_source_json(EXAMPLE, _INTERVALS, None, STATISTICS)
    )

    push: PushView | None = Field(description="Its hub; null: it has none.")
    statistics: SourceStatisticsView | None = Field(description=_STATISTICS)


class PlanView(BaseModel):
    """When a source is visited next, and why then."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: plan_json(EXAMPLE, STATISTICS, "en"))

    source_id: int
    state: SourceState = Field(description=STATE)
    needs_attention: bool = Field(description=_NEEDS_ATTENTION)
    next_fetch_at: Time | None = Field(description=_NEXT_VISIT)
    why: str = Field(description="The reason in a sentence, in the language asked for.")
    error: str | None = Field(description=_LAST_ERROR)
    failing_since_at: Time | None = Field(description=_FAILING_SINCE)
    advice: str | None = Field(
        description="What its owner can do, in the language asked for; null: there is nothing to do."
    )
    reason: dict[str, Any] = Field(description="The reason as numbers.")
    repairs: list[RepairView] = Field(description=_REPAIRS)
    statistics: SourceStatisticsView | None = Field(description=_STATISTICS)


class CollectorSourceView(BaseModel):
    """How one source is doing."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: collector_source_json(_FLEET, 60.0))

    id: int
    name: str
    type: str = Field(description="The type's one-word name where it has one.")
    interval_minutes: int | float = Field(description="The source's own fixed interval, else its type's.")
    last_fetched_at: Time | None = Field(description="When it was last visited; null: never.")
    next_fetch_at: Time | None = Field(
        description=(
            f"{_NEXT_VISIT} Under the policy `interval` this is `last_fetched_at` plus `interval_minutes`, unless "
            "the publisher or failures put it off."
        )
    )
    fetch_count: int = Field(description="All visits so far.")
    fetch_error_count: int = Field(description="The visits that failed.")
    last_error: str | None = Field(description=_LAST_ERROR)
    status: str = Field(
        description=(
            "As the document has it: ok; needs_attention: its credentials are refused; paused and error: it fails "
            "for long and is visited daily or weekly; retired: gone; off: paused by a person."
        )
    )
    state: SourceState = Field(description=STATE)


def interval_minutes(config: JsonObject, type_minutes: float) -> int | float:
    """The fixed interval of a source with this config; a whole number where it is one."""
    minutes = float(config.get("fetch_interval_minutes") or type_minutes)
    return int(minutes) if minutes.is_integer() else minutes


_repair_json: Shape[Repair] = Shape(RepairView, ("text",))


def _repairs_json(source: Source, language: Language | None = None) -> list[Json]:
    return [_repair_json(each, text=each.render(language)) for each in source.metadata.repairs or ()]


_PUBLIC: dict[str, Any] = {
    "title": lambda source: source.metadata.title,
    "site_url": lambda source: source.metadata.site_url,
}
_WHOLE: dict[str, Any] = {
    **_PUBLIC,
    "description": lambda source: source.metadata.description,
    "language": lambda source: source.metadata.language,
    "icon_url": lambda source: source.metadata.icon_url,
    "details": lambda source: dict(source.metadata.details) if source.metadata.details else None,
    "repairs": _repairs_json,
    "config": lambda source: shown_config(source.config, config_model_of(source.type)),
    "state": find_state,
    "needs_attention": needs_attention,
    "next_fetch_at": lambda source: iso(next_visit_at(source)),
    "plan_reason": lambda source: dict(source.plan_reason),
}
public_source_json: Shape[Source] = Shape(PublicSourceView, **_PUBLIC)
_source_json: Shape[Source] = Shape(SourceView, ("fetch_interval_minutes",), **_WHOLE)
_push_json: Shape[Subscription] = Shape(PushView)
_collector_source_json: Shape[FleetSource] = Shape(
    CollectorSourceView,
    ("interval_minutes",),
    type=lambda source: alias_of(source.type),
    next_fetch_at=lambda source: iso(next_visit_at(source)),
    status=lambda source: source.status if source.schedule_enabled else "off",
    state=find_state,
)


def source_json(source: Source, intervals: Mapping[str, float]) -> Json:
    """`intervals`: minutes between visits by type, in force now."""
    minutes = interval_minutes(source.config, intervals.get(source.type, 0.0))
    return _source_json(source, fetch_interval_minutes=minutes)


def whole_source_json(
    source: Source,
    intervals: Mapping[str, float],
    push: Subscription | None,
    statistics: SourceStatistics | None,
) -> Json:
    return {
        **source_json(source, intervals),
        "push": None if push is None else _push_json(push),
        "statistics": None if statistics is None else source_statistics_json(statistics),
    }


def plan_json(source: Source, statistics: SourceStatistics | None, language: Language | None = None) -> Json:
    return {
        "source_id": source.id,
        "state": find_state(source),
        "needs_attention": needs_attention(source),
        "next_fetch_at": iso(next_visit_at(source)),
        "why": explain_next(source, language),
        "error": source.last_error,
        "failing_since_at": iso(source.failing_since_at),
        "advice": tell_advice(source, language),
        "reason": dict(source.plan_reason),
        "repairs": _repairs_json(source, language),
        "statistics": None if statistics is None else source_statistics_json(statistics),
    }


def collector_source_json(source: FleetSource, type_minutes: float) -> Json:
    """A source under the names of the collector's status."""
    return _collector_source_json(source, interval_minutes=interval_minutes(source.config, type_minutes))


_INTERVALS: dict[str, float] = {"rss.feed": 240.0}
EXAMPLE: Source = Source(
    id=1,
    name="Example",
    type="rss.feed",
    url="https://example.org/feed.xml",
    config={"user": "me", "password": "secret"},
    folder="News",
    metadata=SourceMetadata(title="Example", site_url="https://example.org/", language="en"),
    created_at=1_767_225_600.0,
    next_fetch_at=1_772_019_000.0,
    plan_reason={"policy": "interval", "interval": 14_400.0},
    last_fetched_at=1_772_015_400.0,
    last_entry_at=1_772_014_320.0,
    fetch_count=142,
    hit_count=31,
    fetch_error_count=2,
)
_FLEET: FleetSource = FleetSource(
    id=1,
    name="Hacker News",
    type="api.hackernews",
    config={},
    schedule_enabled=True,
    is_deleted=False,
    is_late=False,
    status="ok",
    consecutive_failures=0,
    last_fetched_at=1_772_015_400.0,
    next_fetch_at=1_772_019_000.0,
    fetch_count=142,
    fetch_error_count=0,
    last_error=None,
)

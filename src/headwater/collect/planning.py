"""What a visit's end means for its source: its state, its next plan, its failure count, its statistics. Pure.

Which policy plans a source: the one set on it; else, where an interval is set on it, the fixed interval; else, while
its type's interval was set by hand and there is little history, the fixed interval; else the fleet's. Whenever a policy
breaks down, the fixed interval stands in, the event is logged and the state starts again: planning never stops a
collection.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from random import Random
from typing import Any
from zlib import crc32

from headwater.errors import FailureKind, InputError, VisitError
from headwater.model import Json, Observation, Plan, Source, SourceStats, SourceStatus, changed_source
from headwater.schedule.adaptive import AdaptivePolicy
from headwater.schedule.backoff import Failure, classify_failure, find_status
from headwater.schedule.cadence import (
    RECENT_ENTRIES,
    CadencePolicy,
    advance_stats,
    is_sound,
    needs_analysis,
    unpack_stats,
    with_counts,
)
from headwater.schedule.compose import Limits, plan_next
from headwater.schedule.interval import IntervalPolicy
from headwater.schedule.layout import is_state
from headwater.schedule.policy import Policy

log = logging.getLogger(__name__)

POLICIES = ("adaptive", "cadence", "interval")
ENOUGH_CHECKS = 10  # visits after which a type's interval set by hand gives way to the fleet's policy
HISTORY_ITEMS = 500
STRANGE_TYPE_MINUTES = 240.0  # for a type whose plugin is not there (any more)

_OF_CADENCE = (
    *("frequency_type", "cadence", "avg_publish_hour", "std_publish_hour"),
    *("last_article_at", "check_count", "hit_count"),
)
_UNLIMITED = Limits(min_interval_seconds=0.0, max_interval_seconds=float("inf"))


@dataclass(frozen=True, slots=True)
class Planner:
    """Turns what visits showed into plans, with the settings in force."""

    interval_minutes: Mapping[str, float]  # by type
    set_by_hand: frozenset[str]  # the types whose interval the operator has set
    policy: str
    price_seconds: float
    limits: Limits
    rng: Random
    target_seconds: float | None = None  # how soon items are to be found; None: within the fixed interval
    goal: tuple[float | None, ...] = ()  # what the price is steered to: a budget, or a freshness
    usual_rates: Mapping[str, float] = field(default_factory=dict)  # items per second, by type

    def history_wanted(self, source: Source, *, news: bool) -> int:
        """How many of a source's stored publication times its next plan needs to be told.

        `news`: whether the visit may have found something new.
        """
        if source.last_fetched_at is None:
            return 0
        if _has_lost_state(self.policy_of(source), source):
            return HISTORY_ITEMS
        checks = source.stats.check_count if source.stats else 0
        return RECENT_ENTRIES if needs_analysis(checks + 1, news) else 0

    def after_success(
        self, source: Source, seen: Observation, history: Sequence[float] = (), **found: Any
    ) -> Source:
        """The source after a visit that worked (or had nothing to do). `history` is what was wanted, or nothing.

        `found` are fields that the visit itself has changed.
        """
        state, plan = self._plan(source, seen, None, history)
        stats = self._advance(source, seen, "", history, plan, state)
        found.update(
            policy_state=state,
            next_fetch_at=plan.next_at,
            plan_reason=plan.reason,
            planned_from=self._fingerprint(source, plan.reason),
            status="ok",
            is_late=self._is_late(source, seen),
            failing_since_at=None,
            is_active=True,
            consecutive_failures=0,
            last_error=None,
            last_error_kind=None,
            stats=stats,
        )
        return changed_source(source, found)

    def after_failure(self, source: Source, error: VisitError, at: float, *, ours: bool = False) -> Source:
        """The source after a visit that failed; `ours`: because our own network did."""
        count = 0 if ours else source.consecutive_failures + 1
        failure = Failure(count, error.kind, error.http_status, str(error), error.retry_after_seconds)
        seen = Observation(at=at, outcome="failed", hints=source.hints)
        state, plan = self._plan(source, seen, failure, ())
        status: SourceStatus = find_status(count, self.limits.thresholds)
        if ours:
            status = source.status
        elif error.kind is FailureKind.GONE:
            status = "retired"
        elif status == "ok" and error.kind is FailureKind.UNAUTHORIZED:
            status = "needs_attention"
        stats = self._advance(source, seen, str(error), (), plan, state)
        backed_off = plan.reason.get("decided_by") in ("backoff", "paused", "error")
        return replace(
            source,
            policy_state=state,
            next_fetch_at=plan.next_at,
            plan_reason={**plan.reason, "our_outage": True} if ours else plan.reason,
            planned_from=self._fingerprint(source, plan.reason),
            status=status,
            is_active=status in ("ok", "needs_attention"),
            consecutive_failures=source.consecutive_failures if ours else count,
            failing_since_at=at if count == 1 else source.failing_since_at,
            stats=replace(
                stats,
                fail_count=source.consecutive_failures if ours else count,
                backoff_until=int(plan.next_at) if backed_off else 0,
            ),
        )

    def _is_late(self, source: Source, seen: Observation) -> bool:
        """Whether what this visit found was found too late; without anything to tell by, as it was.

        What was published before the visit before tells nothing: its publisher showed it late.
        """
        since = source.last_fetched_at
        delays = [seen.at - at for at in seen.item_times if since is not None and since < at]
        if not delays:
            return source.is_late
        target = self.interval_seconds(source) if self.target_seconds is None else self.target_seconds
        return sum(delays) / len(delays) > target

    def policy_of(self, source: Source) -> Policy:
        """The policy that plans a source now."""
        name = source.policy or self.policy
        if source.policy is None and name != "interval" and self._keeps_interval(source):
            name = "interval"
        if name == "adaptive":
            usual = self.usual_rates.get(source.type)
            return _adaptive(self.price_seconds, self.limits.min_interval_seconds, usual)
        if name == "cadence":
            return CadencePolicy()
        return IntervalPolicy(self.interval_seconds(source))

    def interval_seconds(self, source: Source) -> float:
        """The fixed interval of a source: its own, else its type's."""
        own = source.config.get("fetch_interval_minutes")
        return 60.0 * (
            own if own is not None else self.interval_minutes.get(source.type, STRANGE_TYPE_MINUTES)
        )

    def _keeps_interval(self, source: Source) -> bool:
        """Whether an interval set by hand holds: the source's own always, its type's for want of history."""
        if source.config.get("fetch_interval_minutes") is not None:
            return True
        enough = source.fetch_count >= ENOUGH_CHECKS and source.hit_count > 0
        return source.type in self.set_by_hand and not enough

    @property
    def basis(self) -> int:
        """A checksum of all that plans are made of, whatever the source."""
        intervals = tuple(sorted(self.interval_minutes.items()))
        return _checksum(self.policy, intervals, tuple(sorted(self.set_by_hand)), self.goal, self.limits)

    def is_outdated(self, source: Source) -> bool:
        """Whether the plan of a source was made of what does not hold any more."""
        if source.next_fetch_at is None and source.planned_from is not None:
            return False  # without a plan
        return source.planned_from != self._fingerprint(source, source.plan_reason)

    def _fingerprint(self, source: Source, reason: Json) -> int:
        """A checksum of all that a plan is made of, but for what visits have shown. Never 0, which no plan has."""
        name = self.policy_of(source).name
        by_interval = name == "interval" or reason.get("policy") == "interval"
        interval = self.interval_seconds(source) if by_interval else None
        return _checksum(name, interval, None if name == "interval" else self.goal, self.limits)

    def replan(self, source: Source) -> Source:
        """The source with a plan made of what holds now, as of its last visit.

        What failures, its publisher, a hub or a busy host have put off stays put off. A policy that has to learn the
        source first is stood in for by the fixed interval.
        """
        reason, before = source.plan_reason, source.next_fetch_at
        at = reason.get("planned_at", source.last_fetched_at)
        if at is None or before is None or not _is_planned_freely(reason):
            return changed_source(source, {"planned_from": self._fingerprint(source, reason)})
        policy: Policy = self.policy_of(source)
        limits = self.limits
        if _has_lost_state(policy, source) or reason.get("failure") == "auth":
            policy = IntervalPolicy(self.interval_seconds(source))
        if isinstance(policy, IntervalPolicy):
            limits = replace(_UNLIMITED, thresholds=limits.thresholds, backoff=limits.backoff)
        seen = Observation(at=float(at), outcome="unchanged", hints=source.hints)
        try:
            _, plan = plan_next(
                _Unchanged(policy, source.policy_state), None, seen, None, limits, seen.at, self.rng
            )
        except Exception:
            log.exception("source %s: its policy broke down; its plan stays", source.id)
            return changed_source(source, {"planned_from": self._fingerprint(source, reason)})
        kept = {name: reason[name] for name in _KEPT_REASONS if name in reason}
        planned = {**plan.reason, **kept}
        if reason.get("decided_by") == "publisher" and before > plan.next_at:
            planned |= {name: reason[name] for name in ("decided_by", "hint", "wait") if name in reason}
            plan = Plan(before)
        return changed_source(
            source,
            {
                "next_fetch_at": plan.next_at,
                "plan_reason": planned,
                "planned_from": self._fingerprint(source, planned),
            },
        )

    def _plan(
        self, source: Source, seen: Observation, failure: Failure | None, history: Sequence[float]
    ) -> tuple[bytes | None, Plan]:
        policy = self.policy_of(source)
        limits = self.limits
        if isinstance(policy, AdaptivePolicy) and _knows_nothing_new(source, seen, failure):
            policy = IntervalPolicy(self.interval_seconds(source))
        if isinstance(policy, IntervalPolicy):
            # An interval is the operator's own word: only the publisher and failures may change it.
            limits = replace(_UNLIMITED, thresholds=limits.thresholds, backoff=limits.backoff)
        try:
            state = source.policy_state
            if history and _has_lost_state(policy, source):
                log.info(
                    "source %s: the state of its policy is rebuilt from %s items", source.id, len(history)
                )
                before = source.last_fetched_at or seen.at
                state = policy.digest(
                    None,
                    Observation(before, "new", tuple(history), len(history), first=True, hints=source.hints),
                )
                if isinstance(policy, CadencePolicy) and source.stats is not None:
                    state = with_counts(state, source.stats)
            return plan_next(policy, state, seen, failure, limits, seen.at, self.rng)
        except Exception:
            log.exception("source %s: its policy broke down; the fixed interval stands in", source.id)
            fixed = IntervalPolicy(self.interval_seconds(source))
            _, plan = plan_next(fixed, None, seen, failure, limits, seen.at, self.rng)
            return None, replace(plan, reason={**plan.reason, "stands_in_for": policy.name})

    def _advance(
        self,
        source: Source,
        seen: Observation,
        error_message: str,
        history: Sequence[float],
        plan: Plan,
        state: bytes | None,
    ) -> SourceStats:
        stats = source.stats or SourceStats()
        if not is_sound(stats):
            log.warning("source %s: its statistics are damaged and start again", source.id)
            stats = SourceStats()
        advanced = advance_stats(
            stats,
            has_new_entries=bool(seen.item_times),
            error_message=error_message,
            recent_times=lambda: sorted([*history, *(min(t, seen.at) for t in seen.item_times)])[
                -RECENT_ENTRIES:
            ],
            now=seen.at,
            planned_at=plan.next_at,
        )
        if plan.reason.get("policy") == "cadence" and (found := unpack_stats(state)) is not None:
            # What the plan was made of is what the table shows.
            advanced = replace(advanced, **{name: getattr(found[0], name) for name in _OF_CADENCE})
        return advanced


_KEPT_REASONS = ("failures", "failure", "needs_attention", "our_outage", "skipped", "asks_to_move")


def _is_planned_freely(reason: Json) -> bool:
    """Whether a plan is a policy's: not a back-off, nor a hub's, nor put off for a busy host."""
    return (
        reason.get("decided_by") not in ("backoff", "paused", "error", "pushed")
        and "postponed" not in reason
        and "delivered" not in reason
    )


@dataclass(frozen=True, slots=True)
class _Unchanged:
    """A policy as it stands, with nothing new to learn."""

    policy: Policy
    state: bytes | None

    @property
    def name(self) -> str:
        return self.policy.name

    def digest(self, state: bytes | None, visit: Observation) -> bytes | None:
        return self.state

    def plan(self, state: bytes | None, now: float, rng: Random) -> Plan:
        return self.policy.plan(self.state, now, rng)


@lru_cache(1024)
def _checksum(*parts: object) -> int:
    return crc32(repr(parts).encode()) or 1


def _knows_nothing_new(source: Source, seen: Observation, failure: Failure | None) -> bool:
    """Whether there is nothing to learn a rhythm from: it has never answered, or it wants other credentials."""
    if seen.outcome not in ("failed", "skipped"):
        return False
    wants_login = failure is not None and failure.count > 0 and classify_failure(failure) == "auth"
    return wants_login or source.last_entry_at is None


@lru_cache(64)
def _adaptive(price: float, min_interval: float, prior_rate: float | None) -> AdaptivePolicy:
    return AdaptivePolicy(price, min_interval, prior_rate)


def read_policy(name: str | None) -> str | None:
    """The policy of this name, None for the one of all. InputError when there is none."""
    if name and name not in POLICIES:
        raise InputError(
            "there is no policy {name}: choose from {names}", name=name, names=", ".join(POLICIES)
        )
    return name or None


def _has_lost_state(policy: Policy, source: Source) -> bool:
    """Whether a policy must learn a source again: its state is damaged, or another policy's."""
    if isinstance(policy, AdaptivePolicy):
        return not is_state(source.policy_state)
    return isinstance(policy, CadencePolicy) and unpack_stats(source.policy_state) is None

"""What a visit's end means for its source: its state, its next plan, its failure count, its statistics. Pure.

Which policy plans a source: the one set on it; else, while its interval was set by hand and there is little
history, the fixed interval; else the fleet's. Whenever a policy breaks down, the fixed interval stands in, the
event is logged and the state is begun anew: planning never stops a collection.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import Any

from headwater.errors import FailureKind, VisitError
from headwater.model import Observation, Plan, Source, SourceStats, SourceStatus, changed_source
from headwater.schedule.adaptive import AdaptivePolicy
from headwater.schedule.backoff import Failure, find_status
from headwater.schedule.cadence import (
    RECENT_ENTRIES,
    CadencePolicy,
    advance_stats,
    is_sound,
    needs_analysis,
    unpack_stats,
)
from headwater.schedule.compose import Limits, plan_next
from headwater.schedule.interval import IntervalPolicy
from headwater.schedule.layout import is_state
from headwater.schedule.policy import Policy

log = logging.getLogger(__name__)

POLICIES = ("adaptive", "cadence", "interval")
ENOUGH_CHECKS = 10  # visits after which an interval set by hand gives way to the fleet's policy
HISTORY_ITEMS = 500
STRANGE_TYPE_MINUTES = 240.0  # for a type whose plugin is not there (any more)

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
        stats = self._advance(source, seen, "", history, plan)
        found.update(
            policy_state=state,
            next_fetch_at=plan.next_at,
            plan_reason=plan.reason,
            status="ok",
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
        stats = self._advance(source, seen, str(error), (), plan)
        backed_off = plan.reason.get("decided_by") in ("backoff", "paused", "error")
        return replace(
            source,
            policy_state=state,
            next_fetch_at=plan.next_at,
            plan_reason={**plan.reason, "our_outage": True} if ours else plan.reason,
            status=status,
            is_active=status in ("ok", "needs_attention"),
            consecutive_failures=source.consecutive_failures if ours else count,
            stats=replace(
                stats,
                fail_count=source.consecutive_failures if ours else count,
                backoff_until=int(plan.next_at) if backed_off else 0,
            ),
        )

    def policy_of(self, source: Source) -> Policy:
        """The policy that plans a source now."""
        name = source.policy or self.policy
        if source.policy is None and name != "interval" and self._keeps_interval(source):
            name = "interval"
        if name == "adaptive":
            return _adaptive(self.price_seconds)
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
        """Whether an interval set by hand still holds, for want of history."""
        by_hand = "fetch_interval_minutes" in source.config or source.type in self.set_by_hand
        enough = source.fetch_count >= ENOUGH_CHECKS and source.hit_count > 0
        return by_hand and not enough

    def _plan(
        self, source: Source, seen: Observation, failure: Failure | None, history: Sequence[float]
    ) -> tuple[bytes | None, Plan]:
        policy = self.policy_of(source)
        limits = self.limits
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
                    None, Observation(before, "new", tuple(history), len(history), first=True)
                )
            return plan_next(policy, state, seen, failure, limits, seen.at, self.rng)
        except Exception:
            log.exception("source %s: its policy broke down; the fixed interval stands in", source.id)
            fixed = IntervalPolicy(self.interval_seconds(source))
            _, plan = plan_next(fixed, None, seen, failure, limits, seen.at, self.rng)
            return None, replace(plan, reason={**plan.reason, "stands_in_for": policy.name})

    def _advance(
        self, source: Source, seen: Observation, error_message: str, history: Sequence[float], plan: Plan
    ) -> SourceStats:
        stats = source.stats or SourceStats()
        if not is_sound(stats):
            log.warning("source %s: its statistics are damaged and begin anew", source.id)
            stats = SourceStats()
        return advance_stats(
            stats,
            has_new_entries=bool(seen.item_times),
            error_message=error_message,
            recent_times=lambda: sorted([*history, *seen.item_times])[-RECENT_ENTRIES:],
            now=seen.at,
            planned_at=plan.next_at,
        )


@lru_cache(8)
def _adaptive(price_seconds: float) -> AdaptivePolicy:
    return AdaptivePolicy(price_seconds)


def _has_lost_state(policy: Policy, source: Source) -> bool:
    """Whether a policy must learn a source anew: its state is damaged, or another policy's."""
    if isinstance(policy, AdaptivePolicy):
        return not is_state(source.policy_state)
    return isinstance(policy, CadencePolicy) and unpack_stats(source.policy_state) is None

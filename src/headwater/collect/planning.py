"""What a visit's end means for its source: the next plan, the failure count, the status. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from headwater.errors import FailureKind, VisitError
from headwater.model import Observation, Source
from headwater.schedule.interval import IntervalPolicy

FIRST_BACKOFF_SECONDS = 15 * 60.0
LONGEST_BACKOFF_SECONDS = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Planner:
    """Turns observations into plans, with the intervals in force."""

    interval_minutes: Mapping[str, float]  # by type
    rng: Random

    def after_success(self, source: Source, seen: Observation) -> Source:
        """The source after a visit that worked."""
        policy = IntervalPolicy(self._interval_seconds(source))
        state = policy.digest(source.policy_state, seen)
        plan = policy.plan(state, seen.at, self.rng)
        return replace(
            source,
            policy_state=state,
            next_fetch_at=plan.next_at,
            plan_reason=plan.reason,
            status="ok",
            is_active=True,
            consecutive_failures=0,
            last_error=None,
            last_error_kind=None,
        )

    def after_failure(self, source: Source, error: VisitError, at: float) -> Source:
        """The source after a visit that failed."""
        failures = source.consecutive_failures + 1
        wait = min(FIRST_BACKOFF_SECONDS * 2.0 ** min(failures - 1, 20), LONGEST_BACKOFF_SECONDS)
        return replace(
            source,
            next_fetch_at=at + wait,
            plan_reason={"back_off": wait, "failures": failures, "kind": str(error.kind)},
            status="retired" if error.kind is FailureKind.GONE else source.status,
            consecutive_failures=failures,
        )

    def _interval_seconds(self, source: Source) -> float:
        own = source.config.get("fetch_interval_minutes")
        return 60.0 * (own if own is not None else self.interval_minutes[source.type])

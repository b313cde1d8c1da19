"""One plan from all that has a say: the policy, the publisher, the limits, and what failed.

The order is fixed, and whatever changed the plan stands in its reason under "decided_by".
"""

from dataclasses import dataclass
from random import Random

from headwater.model import Hints, Observation, Plan
from headwater.schedule.backoff import (
    DEFAULT_THRESHOLDS,
    FIRST_SECONDS,
    Failure,
    Preset,
    Thresholds,
    classify_failure,
    find_backoff,
    find_probe,
    find_status,
)
from headwater.schedule.hints import find_floor, skip_closed_hours
from headwater.schedule.kernel.plan import find_longest
from headwater.schedule.policy import Policy


@dataclass(frozen=True, slots=True)
class Limits:
    """What the operator allows, whatever the policy thinks best."""

    min_interval_seconds: float = 300.0
    max_interval_seconds: float = 24 * 3600.0
    dormant_interval_seconds: float | None = None  # for sources without new items for long
    backoff: Preset = "cadence"
    backoff_base_seconds: float = FIRST_SECONDS
    thresholds: Thresholds = DEFAULT_THRESHOLDS


def plan_next(
    policy: Policy,
    state: bytes | None,
    visit: Observation,
    failure: Failure | None,
    limits: Limits,
    now: float,
    rng: Random,
) -> tuple[bytes | None, Plan]:
    """The state after `visit` and the next visit: policy, publisher's floor, limits, back-off, probe.

    `failure` goes with a failed visit; `failure.count` is 0 where the fault was ours, and then the source is
    simply visited again as its policy says. The plan is after `now`, not before the publisher's floor, and
    not beyond the maximum unless the publisher, a back-off or a probe asks for more.
    """
    state = policy.digest(state, visit)
    wished = policy.plan(state, now, rng)
    reason = dict(wished.reason)
    decided_by = "policy"
    at = max(wished.next_at, now)
    longest = find_longest(
        limits.max_interval_seconds,
        limits.dormant_interval_seconds or 0.0,
        reason.get("silent_days", 0.0) * 86400.0,
    )
    if at > now + longest:
        at, decided_by = now + longest, "max_interval"
    if at < now + limits.min_interval_seconds:
        at, decided_by = now + limits.min_interval_seconds, "min_interval"
    if failure is not None and failure.count > 0:
        reason.update(failures=failure.count, failure=classify_failure(failure))
        status = find_status(failure.count, limits.thresholds)
        probe = find_probe(failure.count, limits.thresholds)
        wait = find_backoff(failure, limits.backoff, limits.backoff_base_seconds)
        if probe is not None:
            at, decided_by = now + max(probe, failure.retry_after_seconds or 0.0), status
        elif wait > 0.0:
            at, decided_by = max(now + wait, now + limits.min_interval_seconds), "backoff"
            reason["backoff"] = wait
        if classify_failure(failure) == "auth":
            reason["needs_attention"] = True
    at, floor = _raise_to_floor(visit.hints, at, now)
    if floor is not None:
        decided_by = "publisher"
        reason["hint"] = floor
    reason.update(decided_by=decided_by, planned_at=now, wait=at - now)
    return state, Plan(max(at, now + 1.0), reason)


def _raise_to_floor(hints: Hints, at: float, now: float) -> tuple[float, str | None]:
    """The plan raised to the publisher's floor, and the hint that raised it."""
    hint = None
    floor = find_floor(hints, now)
    if floor is not None and floor.at > at:
        at, hint = floor.at, floor.hint
    closed = skip_closed_hours(hints, at, now)
    if closed is not None:
        at, hint = closed.at, closed.hint
    return at, hint

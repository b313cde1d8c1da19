"""A plan's reason as one sentence, in English or Simplified Chinese."""

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from typing import Protocol

from headwater.language import Language, translate
from headwater.model import Json, Plan
from headwater.schedule.adaptive import describe_state
from headwater.states import (
    Failed,
    Planned,
    find_state,
    is_visited,
    tell_advice,
    tell_failure,
    tell_state,
)

TellTime = Callable[[float], str]  # as people say it within a sentence, instead of the whole date


class Explained(Planned, Protocol):
    """A source, or what a list shows of one: without its policy's state the usual hours are left out."""

    @property
    def plan_reason(self) -> Json: ...
    @property
    def last_entry_at(self) -> float | None: ...


class ExplainedWhole(Explained, Failed, Protocol):
    pass


def explain_plan(
    plan: Plan,
    language: Language | None = None,
    zone: tzinfo = UTC,
    state: bytes | None = None,
    *,
    has_items: bool = True,
    tell_time: TellTime | None = None,
) -> str:
    """Why the next visit is when it is. With the policy's state the sentence also tells the usual hours.

    `has_items`: whether the source has ever shown an item; of one that has not, no rate is known.
    """
    reason = plan.reason
    parts = [
        _tell_policy(reason, language, zone, state, plan.next_at)
        if has_items or reason.get("policy") != "adaptive"
        else translate("no items so far", language)
    ]
    if skipped := reason.get("skipped"):
        parts = [_say("visits are skipped: {reason}", language, reason=translate(str(skipped), language))]
    parts.append(_tell_visit(plan, language, zone, tell_time))
    if reason.get("needs_attention"):
        parts.append(translate("the source refuses its credentials: it needs your attention", language))
    if reason.get("asks_to_move"):
        parts.append(
            _say(
                "it redirects to {url} for good, where its credentials are not sent: change its address, or remove"
                " its credentials",
                language,
                url=reason["asks_to_move"],
            )
        )
    return translate("; ", language).join(part for part in parts if part)


def explain_next(
    source: Explained,
    language: Language | None = None,
    zone: tzinfo = UTC,
    tell_time: TellTime | None = None,
) -> str:
    """Why a source's next visit is when it is, or why there is none."""
    state = find_state(source)
    if not is_visited(source):
        return _say("{state}; no visit is planned", language, state=tell_state(state, language))
    if source.plan_reason.get("delivered"):
        return translate("e-mails are stored as they arrive; no visit is planned", language)
    if source.next_fetch_at is None:
        return translate("not visited yet; first in line", language)
    return explain_plan(
        Plan(source.next_fetch_at, source.plan_reason),
        language,
        zone,
        getattr(source, "policy_state", None),
        has_items=source.last_entry_at is not None,
        tell_time=tell_time,
    )


def explain_source(
    source: ExplainedWhole,
    language: Language | None = None,
    zone: tzinfo = UTC,
    tell_time: TellTime | None = None,
) -> list[str]:
    """All there is to say of how a source is doing, sentence by sentence: plan, error and since when, what to do."""
    advice = tell_advice(source, language)
    return [
        explain_next(source, language, zone, tell_time),
        *filter(None, (tell_failure(source, language, zone),)),
        *([] if advice is None else [_say("what to do: {advice}", language, advice=advice)]),
    ]


def _say(template: str, language: Language | None, **values: object) -> str:
    return translate(template, language).format(**values)


def _tell_policy(
    reason: Json, language: Language | None, zone: tzinfo, state: bytes | None, at: float
) -> str:
    policy = reason.get("policy")
    if policy == "adaptive":
        return _tell_rate(reason, language) + _tell_hours(state, at, language, zone)
    if policy == "cadence":
        return _say(
            "cadence {cadence} ({frequency}), every {interval}",
            language,
            cadence=reason["cadence"],
            frequency=reason["frequency"],
            interval=tell_duration(float(reason["interval"]), language),
        )
    if policy == "interval":
        interval = tell_duration(float(reason["interval"]), language)
        return _say("fixed interval of {interval}", language, interval=interval)
    return ""


def _tell_rate(reason: Json, language: Language | None) -> str:
    now, usual = float(reason["per_day"]), float(reason["per_day_long"])
    text = tell_rate(usual, language)
    if now > 2 * usual:
        text += _say(", more than usual lately ({rate})", language, rate=tell_rate(now, language))
    elif now < usual / 2:
        text += _say(", less than usual lately ({rate})", language, rate=tell_rate(now, language))
    return text


def tell_rate(per_day: float, language: Language | None) -> str:
    for amount, template in (
        (per_day, "about {amount} items a day"),
        (per_day * 7, "about {amount} items a week"),
        (per_day * 30, "about {amount} items a month"),
    ):
        if amount >= 1:
            return _say(template, language, amount=f"{amount:.2g}" if amount < 100 else f"{amount:.0f}")
    return translate("hardly any items", language)


def _tell_hours(state: bytes | None, at: float, language: Language | None, zone: tzinfo) -> str:
    """The hours most items come in, told in the reader's own zone."""
    found = describe_state(state, at)
    if found is None:
        return ""
    text = ""
    if found.hours is not None:
        shift = datetime.fromtimestamp(at, zone).utcoffset()
        offset = round(shift.total_seconds() / 3600) if shift is not None else 0
        begin, end = ((hour + offset) % 24 for hour in found.hours)
        text = _say(", mostly {begin:02d}–{end:02d} h", language, begin=begin, end=end)
    if found.weekdays_only:
        text += translate(" on weekdays", language)
    return text


def _tell_visit(plan: Plan, language: Language | None, zone: tzinfo, tell_time: TellTime | None) -> str:
    reason = plan.reason
    if tell_time is not None:
        when = tell_time(plan.next_at)
    else:
        when = datetime.fromtimestamp(plan.next_at, zone).strftime("%Y-%m-%d %H:%M")
    decided = reason.get("decided_by", "policy")
    if decided == "publisher":
        wait = tell_duration(float(reason.get("wait", 0.0)), language)
        return _say(
            "next visit {when} because the publisher asks to wait {wait} ({hint})",
            language,
            when=when,
            wait=wait,
            hint=reason.get("hint", ""),
        )
    if decided == "backoff":
        return _say(
            "next visit {when} because {failures} {failures:visit|visits in a row} failed",
            language,
            when=when,
            failures=reason.get("failures", 1),
        )
    if decided == "policy" and reason.get("policy") == "adaptive":
        decided = "window" if reason.get("window") else "adaptive"
    return _say(_SENTENCES.get(decided, "next visit {when}"), language, when=when)


_SENTENCES = {
    "adaptive": "next visit {when} because waiting longer would cost more than a request",
    "window": "next visit {when}, before items could drop out of the feed unseen",
    "min_interval": "next visit {when}: no source is visited more often than that",
    "max_interval": "next visit {when}: no source is left alone longer than that",
    "paused": "next visit {when}: visited once a day after repeated failures, until it works",
    "error": "next visit {when}: visited once a week after many failures, until it works",
    "pushed": "pushed by hub; safety check daily, the next {when}",
    "policy": "next visit {when}",
}


def tell_duration(seconds: float, language: Language | None) -> str:
    if seconds < 60:
        return _say("{amount} s", language, amount=f"{seconds:.0f}")
    minutes = round(seconds / 60)
    if minutes < 120:
        return _say("{amount} min", language, amount=minutes)
    hours = round(seconds / 3600, 1)
    if hours < 48:
        return _say("{amount} h", language, amount=f"{hours:g}")
    return _say("{amount} days", language, amount=f"{round(seconds / 86400, 1):g}")

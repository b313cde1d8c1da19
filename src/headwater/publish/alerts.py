"""Alerts: looks for what needs a person, and tells it in one message; and in one, when it is over.

One process at a time looks. Alerts and the message about them are written in one transaction, so after a crash a
problem is neither forgotten nor told twice.
"""

import asyncio
import logging
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final
from uuid import uuid4

from sqlalchemy import Connection

from headwater.config import Settings
from headwater.errors import InputError, Text
from headwater.formats.html import escape_text
from headwater.language import Language
from headwater.publish.calendar import read_zone
from headwater.store.core.database import Store
from headwater.store.core.periodic import end_turn, take_turn
from headwater.store.publishing.alerts import (
    Alert,
    AlertRules,
    Problem,
    get_rules,
    last_told_at,
    note_problems,
    note_told,
    open_alerts,
    untold_alerts,
)
from headwater.store.publishing.outbox import NewDelivery
from headwater.store.publishing.problems import (
    budget_problems,
    delivery_problems,
    digest_problems,
    pipeline_problems,
    silent_sources,
    source_problems,
)
from headwater.store.reports.overview import read_lag
from headwater.wording import duration

log = logging.getLogger(__name__)

KEY = "publish.alerts"
LOOK_SECONDS = 60.0
LEASE_SECONDS = 300.0
LATE_SECONDS = 900.0  # of the collector
SCARCE_BYTES = 1_000_000_000
LOOKED_AT = 2_000  # sources at a time, for silence
SHOWN = 20  # of a kind, in one message

# What each kind is, to people. The source's own words come last.
KINDS: Final[dict[str, str]] = {
    "credentials": "{name} needs its owner: {error}",
    "gone": "{name} is gone: {error}",
    "failing": "{name} has been failing for {days} {days:day|days}: {error}",
    "structure": "{name}: its config no longer matches the page: {error}",
    "silent": "{name} has published nothing for {days} {days:day|days}, although it used to",
    "pipeline": "the pipeline {name} fails: {failed} of {count} {count:run|runs} in 24 hours",
    "budget": "the budget of the model for today is spent: {name}",
    "delivery": "{count} {count:message|messages} to {name} could not be sent: {error}",
    "digest": "the digest {name} cannot be made: {error}",
    "disk": "only {free} GB are free in {place}",
    "lag": "the collector is late: a source has been waiting for {time}",
}
# The kinds as people choose them.
KIND_NAMES = {
    "credentials": "A source refuses its credentials",
    "gone": "A source is gone",
    "failing": "A source has been failing for days",
    "structure": "A page no longer matches the selectors of its source",
    "silent": "A source has published nothing for far longer than it used to",
    "pipeline": "A pipeline's runs fail",
    "budget": "The budget of a model is spent",
    "delivery": "Messages cannot be sent",
    "digest": "A digest cannot be made",
    "disk": "The disk is nearly full",
    "lag": "Sources wait for their visits",
}
_HOUR = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")


def check_rules(rules: AlertRules) -> AlertRules:
    """InputError for rules that cannot be followed."""
    for kind in rules.off:
        if kind not in KINDS:
            raise InputError("there is no alert {kind}; there are {known}", kind=kind, known=", ".join(KINDS))
    if bool(rules.quiet_from) != bool(rules.quiet_until):
        raise InputError("quiet hours have a beginning and an end, as 22:00 and 07:00")
    for hour in filter(None, (rules.quiet_from, rules.quiet_until)):
        if not _HOUR.fullmatch(hour):
            raise InputError("{hour} is not a time of day; write it as 22:00", hour=hour)
    if not 0 < rules.failing_days <= 365:
        raise InputError("failing_days is a number up to 365")
    if not 1 <= rules.every_minutes <= 1_440:
        raise InputError("every_minutes is a number from 1 to 1440")
    read_zone(rules.zone)
    return rules


def is_quiet(rules: AlertRules, now: float) -> bool:
    """Whether it is a time at which no alert is sent."""
    if not rules.quiet_from or rules.quiet_from == rules.quiet_until:
        return False
    hour = datetime.fromtimestamp(now, read_zone(rules.zone)).strftime("%H:%M")
    if rules.quiet_from < rules.quiet_until:
        return rules.quiet_from <= hour < rules.quiet_until
    return hour >= rules.quiet_from or hour < rules.quiet_until


def tell_problem(problem: Problem | Alert, language: Language | None = None) -> str:
    """A problem in a sentence."""
    values = dict(problem.data)
    if problem.kind == "lag":
        values["time"] = duration(float(values["seconds"]), language)
    try:
        return Text(KINDS[problem.kind], **values).render(language)
    except KeyError:  # of a version of Headwater that is not ours
        return f"{problem.kind} {problem.subject}".strip()


class Watcher:
    """Looks once a minute, whichever process has the turn."""

    def __init__(
        self, store: Store, settings: Settings, clock: Callable[[], float], language: Language | None = None
    ) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._language = language
        self._holder = uuid4().hex
        self._look_at = 0.0
        self._next_source = 0
        self._silent: dict[str, Problem] = {}

    async def run_if_due(self) -> bool:
        """Look and tell, if it is time and no other process does."""
        now = self._clock()
        if 0 < self._look_at - now <= LOOK_SECONDS:
            return False
        self._look_at = now + LOOK_SECONDS / 2
        rules = await self._store.read(get_rules)
        if not rules.targets:
            return False
        turn = await self._store.write(
            take_turn, KEY, self._holder, every_seconds=LOOK_SECONDS, now=now, lease_until=now + LEASE_SECONDS
        )
        if turn is None:
            return False
        completed = False
        try:
            await self.look(rules, now)
            completed = True
        finally:
            await self._store.write(
                end_turn, KEY, self._holder, completed=completed, note="", now=self._clock()
            )
        return True

    async def look(self, rules: AlertRules, now: float) -> None:
        found = [
            *await self._store.read(_read_problems, rules, now),
            *await self._silent_sources(now),
            *await asyncio.to_thread(_disk_problems, self._settings),
        ]
        wanted = [each for each in found if each.kind not in rules.off]
        await self._store.write(_note_and_tell, wanted, rules, now, self._language)

    async def _silent_sources(self, now: float) -> list[Problem]:
        """Those that are known to be silent, looked at again, and those among the next few thousand."""
        first = self._next_source == 0
        found, self._next_source = await self._store.read(silent_sources, now, self._next_source, LOOKED_AT)
        kept = await self._store.read(_open_silent) if first and not self._silent else self._silent
        known: dict[str, Problem] = {}
        for subject in kept:
            still, _ = await self._store.read(silent_sources, now, int(subject) - 1, 1)
            known |= {each.subject: each for each in still}
        self._silent = known | {each.subject: each for each in found}
        return list(self._silent.values())


def _read_problems(connection: Connection, rules: AlertRules, now: float) -> list[Problem]:
    lag = read_lag(connection, now)
    return [
        *source_problems(connection, now, rules.failing_days),
        *pipeline_problems(connection, now),
        *budget_problems(connection, now),
        *delivery_problems(connection, now),
        *digest_problems(connection),
        *([Problem("lag", "", {"seconds": round(lag)})] if lag > LATE_SECONDS else []),
    ]


def _open_silent(connection: Connection) -> dict[str, Problem]:
    return {
        each.subject: Problem(each.kind, each.subject, each.data)
        for each in open_alerts(connection)
        if each.kind == "silent"
    }


def _disk_problems(settings: Settings) -> list[Problem]:
    place = settings.data_dir
    there = next((each for each in (place, *place.parents) if each.exists()), Path("/"))
    free = shutil.disk_usage(there).free
    if free >= SCARCE_BYTES:
        return []
    return [Problem("disk", "", {"free": f"{free / 1e9:.1f}", "place": str(there)})]


def _note_and_tell(
    connection: Connection, found: Sequence[Problem], rules: AlertRules, now: float, language: Language | None
) -> None:
    note_problems(connection, found, now)
    since = now - last_told_at(connection)
    if is_quiet(rules, now) or 0 <= since < 60 * rules.every_minutes:
        return
    told = untold_alerts(connection)
    if told:
        note_told(connection, told, compose_alert(rules, told, language), now)


def compose_alert(
    rules: AlertRules, told: Sequence[Alert], language: Language | None = None
) -> list[NewDelivery]:
    """One message with all that has begun and ended, for each target."""
    begun = [each for each in told if each.ended_at is None]
    over = [each for each in told if each.ended_at is not None]
    parts = [
        (Text("{count} {count:problem|problems}", count=len(begun)).render(language), begun),
        (Text("{count} {count:is|are} over", count=len(over)).render(language), over),
    ]
    named = [(heading, each) for heading, each in parts if each]
    title = "Headwater: " + ", ".join(heading for heading, _ in named)
    if len(told) == 1:
        said = tell_problem(told[0], language)
        title = "Headwater: " + (said if begun else Text("over: {problem}", problem=said).render(language))
    lines, html = [], []
    for heading, each in named:
        lines += [f"{heading}:", *(f"- {line}" for line in _told(each, language)), ""]
        rows = "".join(f"<li>{escape_text(line)}</li>" for line in _told(each, language))
        html.append(f"<h2>{escape_text(heading)}</h2>\n<ul>{rows}</ul>")
    data = {
        "alerts": [
            {"kind": each.kind, "subject": each.subject, "text": tell_problem(each, language), **each.data}
            for each in begun
        ],
        "over": [
            {"kind": each.kind, "subject": each.subject, "text": tell_problem(each, language)}
            for each in over
        ],
    }
    key = "alert-" + "-".join([*(f"{each.id}" for each in told[:50]), *(["over"] if over else [])])
    text = "\n".join(lines).strip()
    return [
        NewDelivery(target, key[:500], title[:200], text, "\n".join(html), data) for target in rules.targets
    ]


def _told(alerts: Sequence[Alert], language: Language | None) -> list[str]:
    """The sentences, the first few of each kind; of the others, how many there are."""
    lines: list[str] = []
    for kind in dict.fromkeys(each.kind for each in alerts):
        its = [each for each in alerts if each.kind == kind]
        lines += [tell_problem(each, language) for each in its[:SHOWN]]
        if len(its) > SHOWN:
            lines.append(Text("… and {count} more", count=len(its) - SHOWN).render(language))
    return lines


def changed_rules(rules: AlertRules, **changes: object) -> AlertRules:
    """Rules with what is given, checked."""
    return check_rules(replace(rules, **{key: value for key, value in changes.items() if value is not None}))  # type: ignore[arg-type]

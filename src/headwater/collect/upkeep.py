"""The hourly upkeep: deletes items that are too old or too many, ends "read later", sums visit records by the hour.

One worker at a time does it, beside its visits, in batches so small that no writer waits for them. It may be cut off
anywhere: what is left is done the next time. Sums by the minute are made as the minutes pass.
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

from headwater.config import Settings
from headwater.store.collecting.counting import count_old_sources, note_source_count
from headwater.store.collecting.queue import reset_future_plans
from headwater.store.collecting.sources import remove_unsubscribed
from headwater.store.core.database import Store
from headwater.store.core.periodic import Turn, end_turn, keep_turn, take_turn
from headwater.store.people.marks import cleanup_read_later
from headwater.store.people.stories import delete_old_keys
from headwater.store.pipelines.runs import take_back_waits
from headwater.store.reading.items import count_all_items, note_item_count
from headwater.store.reading.retention import (
    OldItem,
    Rule,
    all_source_ids,
    count_by_source,
    delete_idle_items,
    old_items,
    own_rules,
    sources_with_news,
    surplus_items,
)
from headwater.store.reports.hours import (
    HOUR,
    Rolled,
    add_up,
    delete_records,
    first_record_at,
    hour_of,
    read_rolled,
    roll_minutes,
    set_rolled,
    slot_of,
    write_hours,
)

log = logging.getLogger(__name__)

KEY = "upkeep"
EVERY_SECONDS = HOUR
LEASE_SECONDS = 300.0
LATE_SECONDS = 2 * HOUR  # how long after its beginning a visit may still come to be settled
DAY = 24 * HOUR

READ_ROWS = 2_000
FEWEST_ROWS = 20
MOST_ROWS = 1_000
WRITE_SECONDS = 0.03  # what a batch should take


class Cut(Exception):  # noqa: N818 - it is not an error
    """A stop, or another worker's turn."""


@dataclass(slots=True)
class Done:
    """What one upkeep has done."""

    items: int = 0
    records: int = 0


class Upkeep:
    """Does the upkeep of a store when it is due. `give_up` tells that there is no more time for it."""

    def __init__(
        self, store: Store, settings: Settings, clock: Callable[[], float], give_up: Callable[[], bool]
    ) -> None:
        self._store = store
        self._rule = Rule(settings.retention_days, settings.retention_items)
        self._record_seconds = DAY * settings.retention_visit_days
        self._removes_unsubscribed = settings.unsubscribed_sources == "remove"
        self._clock = clock
        self._give_up = give_up
        self._holder = uuid4().hex
        self._lease_until = 0.0
        self._rows = 10 * FEWEST_ROWS
        self._look_at = 0.0
        self._slot_at: float | None = None  # the minute in which sums were last made

    @property
    def may_be_due(self) -> bool:
        """Whether it is worth asking the database whether it is due."""
        return slot_of(self._clock()) != self._slot_at or self._hour_may_be_over

    @property
    def _hour_may_be_over(self) -> bool:
        # A clock that was ahead must not keep it away until that time has come.
        return not 0 < self._look_at - self._clock() <= EVERY_SECONDS

    async def run_if_due(self, *, at_once: bool = False) -> Done | None:
        """Do it, if it is time (or `at_once`) and no other worker does. None: not now, or not to the end."""
        now = self._clock()
        await self._store.write(roll_minutes, now)
        self._slot_at = slot_of(now)
        if not at_once and not self._hour_may_be_over:
            return None
        turn = await self._store.write(
            take_turn,
            KEY,
            self._holder,
            every_seconds=0.0 if at_once else EVERY_SECONDS,
            now=now,
            lease_until=now + LEASE_SECONDS,
        )
        self._look_at = now + LEASE_SECONDS
        if turn is None:
            return None
        self._lease_until = now + LEASE_SECONDS
        done, note, completed = Done(), "", False
        try:
            await self._set_right(now)
            await self._store.write(cleanup_read_later, now)
            await self._forget_stories(now)
            await self._remove_unsubscribed(now)
            await self._roll_up(now, done)
            note = await self._purge(turn, now, done)
            await self._store.write(note_item_count, await self._store.read(count_all_items), now)
            await self._store.write(note_source_count, await self._store.read(count_old_sources), now)
            completed = True
        except Cut:
            return None
        finally:
            await self._store.write(
                end_turn, KEY, self._holder, completed=completed, note=note, now=self._clock()
            )
        self._look_at = now + EVERY_SECONDS
        if done.items or done.records:
            log.info("upkeep: deleted %s items and %s visit records", done.items, done.records)
        return done

    async def _set_right(self, now: float) -> None:
        """Put back in line what a clock that was ahead has put out of it."""
        for what, take_back in (("sources", reset_future_plans), ("runs", take_back_waits)):
            if count := await self._store.write(take_back, now):
                log.warning(
                    "%s %s were to wait for a time that a wrong clock had set; they are due now", count, what
                )

    async def _forget_stories(self, now: float) -> None:
        """Delete the keys of stories that are too old to be copied any more."""
        while await self._paced(lambda rows: self._store.write(delete_old_keys, now, rows)):
            pass

    async def _remove_unsubscribed(self, now: float) -> None:
        """Remove sources that have no subscriber, if the settings say so."""
        if not self._removes_unsubscribed:
            return
        remove = partial(remove_unsubscribed, made_before=now - DAY, now=now)
        after = 0
        while after := await self._paced(lambda rows: self._store.write(remove, after, rows)):
            pass

    async def _roll_up(self, now: float, done: Done) -> None:
        """Add the records up by the hour; those whose time is over go."""
        rolled = await self._store.read(read_rolled)
        until, over = hour_of(now), hour_of(now - self._record_seconds)
        if rolled.rolled_until > until:  # the clock was wrong then, and what it said is not to be gone by
            rolled = Rolled(until, min(rolled.final_until, over))
        final_until = max(rolled.final_until, over)
        # What becomes final is added up once more, and so are the hours in which visits may have come in late.
        await self._add_up(rolled.final_until, final_until)
        await self._add_up(max(final_until, rolled.rolled_until - LATE_SECONDS), until)
        await self._store.write(set_rolled, Rolled(rolled_until=until, final_until=final_until), now)
        while gone := await self._paced(lambda rows: self._store.write(delete_records, final_until, rows)):
            done.records += gone

    async def _add_up(self, start: float, end: float) -> None:
        first = await self._store.read(first_record_at)
        start = end if first is None else max(start, hour_of(first))
        while start < end:
            part = min(start + DAY, end)
            await self._store.write(write_hours, await self._store.read(add_up, start, part))
            await self._go_on()
            start = part

    async def _purge(self, turn: Turn, now: float, done: Done) -> str:
        """Delete what the rules do not keep. Returns the rules, in a comparable form."""
        own = await self._store.read(own_rules, self._rule)
        rules = hashlib.sha256(repr((self._rule, sorted(own.items()))).encode()).hexdigest()
        await self._purge_old(self._rule.cutoff(now), None, own, done)
        for source_id, rule in own.items():
            await self._purge_old(rule.cutoff(now), source_id, {}, done)
        if self._rule.items or any(rule.items for rule in own.values()):
            if turn.note == rules:
                candidates = await self._store.read(sources_with_news, turn.done_at - LATE_SECONDS)
            else:  # another rule than the last time: any source may have too many
                candidates = await self._store.read(all_source_ids)
            await self._purge_surplus(candidates, own, done)
        return rules

    async def _purge_old(
        self, before: float | None, source_id: int | None, except_of: Container[int], done: Done
    ) -> None:
        """Delete what was first seen before then, of one source or of all that are not excepted."""
        after: OldItem | None = None
        while before is not None:
            found = await self._store.read(
                old_items, before, after=after, source_id=source_id, limit=READ_ROWS
            )
            if not found:
                return
            await self._delete(
                [old.id for old in found if old.first_seen_at < before and old.source_id not in except_of],
                done,
            )
            after = found[-1]

    async def _purge_surplus(self, candidates: Sequence[int], own: Mapping[int, Rule], done: Done) -> None:
        for start in range(0, len(candidates), READ_ROWS):
            counts = await self._store.read(count_by_source, candidates[start : start + READ_ROWS])
            for source_id, count in counts.items():
                keep = own.get(source_id, self._rule).items
                while keep and count > keep:
                    surplus = await self._store.read(surplus_items, source_id, keep, READ_ROWS)
                    if not surplus:
                        break
                    await self._delete(surplus, done)
                    count -= len(surplus)
            await self._go_on()

    async def _delete(self, item_ids: list[int], done: Done) -> None:
        while item_ids:

            async def delete_first(rows: int) -> int:
                part = item_ids[:rows]
                del item_ids[:rows]
                return await self._store.write(delete_idle_items, part)

            done.items += await self._paced(delete_first)
        await self._go_on()

    async def _paced(self, write: Callable[[int], Awaitable[int]]) -> int:
        """One batch, of as many rows as take WRITE_SECONDS, and as much time again for other writers."""
        await self._go_on()
        begun = time.monotonic()
        result = await write(self._rows)
        took = time.monotonic() - begun
        self._rows = max(FEWEST_ROWS, min(2 * self._rows, MOST_ROWS, int(self._rows * WRITE_SECONDS / took)))
        await asyncio.sleep(took)
        return result

    async def _go_on(self) -> None:
        """Keep the turn while there is time, else end it."""
        if self._give_up():
            raise Cut
        now = self._clock()
        if self._lease_until - now < LEASE_SECONDS / 2:
            lease_until = now + LEASE_SECONDS
            if not await self._store.write(keep_turn, KEY, self._holder, now=now, lease_until=lease_until):
                raise Cut
            self._lease_until = lease_until

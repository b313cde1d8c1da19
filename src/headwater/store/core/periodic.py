"""Work that one worker at a time does every so often, whichever finds it due: a lease in the settings table."""

from dataclasses import asdict, dataclass

import orjson
from sqlalchemy import Connection, select

from headwater.store.core.bulk import insert_rows, is_sqlite
from headwater.store.core.settings import set_setting
from headwater.store.core.tables import settings


@dataclass(frozen=True, slots=True)
class Turn:
    """Whose turn it is, until when, and when the last one began that was completed."""

    holder: str = ""
    lease_until: float = 0.0
    began_at: float = 0.0
    done_at: float = 0.0  # when the last completed one began
    note: str = ""  # what the worker that completed it wants to be told the next time


def take_turn(
    connection: Connection, key: str, holder: str, *, every_seconds: float, now: float, lease_until: float
) -> Turn | None:
    """Take the turn if it is time for it and no other worker has it. None: not now."""
    last = _locked_turn(connection, key)
    # One that ends much later than any taken now was taken by a clock that was ahead.
    is_held = 0 < last.lease_until - now <= 2 * (lease_until - now)
    if is_held or 0 <= now - last.done_at < every_seconds:
        return None
    turn = Turn(holder, lease_until, now, last.done_at, last.note)
    set_setting(connection, key, asdict(turn), now)
    return turn


def keep_turn(connection: Connection, key: str, holder: str, *, now: float, lease_until: float) -> bool:
    """Hold it longer. False: it has passed to another worker."""
    turn = _locked_turn(connection, key)
    if turn.holder != holder:
        return False
    set_setting(
        connection, key, asdict(Turn(holder, lease_until, turn.began_at, turn.done_at, turn.note)), now
    )
    return True


def end_turn(
    connection: Connection, key: str, holder: str, *, completed: bool, note: str, now: float
) -> None:
    """Give it back; the next is due by when this one began, if it was completed."""
    turn = _locked_turn(connection, key)
    if turn.holder == holder:
        done = (
            Turn(done_at=turn.began_at, note=note)
            if completed
            else Turn(done_at=turn.done_at, note=turn.note)
        )
        set_setting(connection, key, asdict(done), now)


def _locked_turn(connection: Connection, key: str) -> Turn:
    query = select(settings.c.value).where(settings.c.key == key)
    if not is_sqlite(connection):
        # A row that is not there cannot be locked, and two would take the turn.
        insert_rows(
            connection, settings, ("key", "value", "updated_at"), [(key, "{}", 0.0)], "ON CONFLICT DO NOTHING"
        )
        query = query.with_for_update()
    value = connection.execute(query).scalar()
    try:
        return Turn(**orjson.loads(value)) if value else Turn()
    except (TypeError, ValueError):
        return Turn()  # a wrong value in the table

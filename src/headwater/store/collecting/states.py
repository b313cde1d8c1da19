"""The states of sources in SQL: what `headwater.states.find_state` says of one, asked of all."""

from sqlalchemy import ColumnElement, TextClause, and_, case, not_, or_, text

from headwater.errors import FailureKind
from headwater.states import SourceState
from headwater.store.core.tables import LIVE, UNUSUAL, sources

_of = sources.c

# In the order in which they are looked for; what is none of these is on time.
_TESTS: dict[SourceState, ColumnElement[bool]] = {
    "removed": _of.is_deleted,
    "paused": ~_of.schedule_enabled,
    "gone": _of.status == "retired",
    "failing": _of.consecutive_failures > 0,
    "pending": _of.last_fetched_at.is_(None),
    "late": _of.is_late,
}

STATE: ColumnElement[str] = case(*((test, state) for state, test in _TESTS.items()), else_="on_time")
NEEDS_ATTENTION: ColumnElement[bool] = and_(
    not_(or_(_TESTS["removed"], _TESTS["paused"], _TESTS["gone"])),
    or_(
        _of.status == "needs_attention",
        and_(_TESTS["failing"], _of.last_error_kind == str(FailureKind.UNAUTHORIZED)),
    ),
)
IS_UNUSUAL: TextClause = text(f"({UNUSUAL})")  # in the index's own words, so that it is used


def in_state(state: SourceState) -> list[ColumnElement[bool] | TextClause]:
    """The conditions that make a source be in a state. All but `on_time` are found by the index of the unusual."""
    before: list[ColumnElement[bool]] = []
    for name, test in _TESTS.items():
        if name == state:
            return [*_found_by(name), *map(not_, before), test]
        if name != "removed":
            before.append(test)
    return [text(LIVE), *map(not_, before)]


def _found_by(state: SourceState) -> list[TextClause]:
    return [IS_UNUSUAL] if state == "removed" else [text(LIVE), IS_UNUSUAL]

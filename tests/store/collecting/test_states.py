"""What SQL says of the states of sources is what Python says of each."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.states import SOURCE_STATES, find_state, needs_attention
from headwater.store.collecting.sources import get_source_or_removed
from headwater.store.collecting.states import in_state
from headwater.store.core.bulk import insert_rows, is_sqlite
from headwater.store.core.database import Store
from headwater.store.core.tables import sources
from headwater.store.reports.catalog import SourceFilter, count_sources, find_sources, sources_page
from headwater.store.reports.overview import count_sources as count_all
from tests.clock import NOON
from tests.examples import examples

COLUMNS = (
    *("is_deleted", "schedule_enabled", "status", "consecutive_failures"),
    *("last_fetched_at", "is_late", "last_error_kind"),
)
rows = st.tuples(
    st.booleans(),
    st.booleans(),
    st.sampled_from(["ok", "needs_attention", "paused", "error", "retired"]),
    st.sampled_from([0, 1, 12]),
    st.sampled_from([None, NOON]),
    st.booleans(),
    st.sampled_from([None, "unauthorized", "timeout"]),
)


@given(st.lists(rows, min_size=1, max_size=12))
@settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_states_in_sql_agree_with_python(store: Store, made: list[tuple[Any, ...]]) -> None:
    with store.writing() as connection:
        connection.execute(sources.delete())
        names = ("id", "name", "type", "url", "url_key", "created_at", "updated_at")
        insert_rows(
            connection,
            sources,
            (*names, *COLUMNS),
            [
                (
                    number,
                    f"s{number}",
                    "rss.feed",
                    f"https://{number}.example/",
                    str(number),
                    NOON,
                    NOON,
                    *row,
                )
                for number, row in enumerate(made, 1)
            ],
        )
        expected = [get_source_or_removed(connection, number) for number in range(1, len(made) + 1)]
        for state in SOURCE_STATES:
            ids = [source.id for source in expected if find_state(source) == state]
            wanted = SourceFilter(state=state)
            assert [
                each.id for each in sources_page(connection, wanted, now=NOON, after=None, limit=99)
            ] == ids
            assert sorted(each.id for each in find_sources(connection, wanted, now=NOON)) == ids
            assert count_sources(connection, wanted, now=NOON) == len(ids)
        asking = [source.id for source in expected if needs_attention(source)]
        attention = SourceFilter(state="needs_attention")
        assert [s.id for s in sources_page(connection, attention, now=NOON, after=None, limit=99)] == asking
        counts = count_all(connection)
        assert counts.needs_attention == len(asking)
        assert {state: number for state, number in counts.states.items() if number} == {
            state: number
            for state in SOURCE_STATES
            if state != "removed" and (number := sum(find_state(source) == state for source in expected))
        }


def test_rare_states_are_found_by_their_index(store: Store) -> None:
    with store.writing() as connection:
        if not is_sqlite(connection):
            return  # which looks through a table that is empty, whatever it has
        for state in SOURCE_STATES:
            if state == "on_time":
                continue
            query = sources.select().where(*in_state(state))
            text = str(query.compile(connection, compile_kwargs={"literal_binds": True}))
            plan = str(connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}").all())
            assert "ix_sources_unusual" in plan, (state, plan)

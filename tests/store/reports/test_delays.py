"""How long items waited: sampled over a span, whole for one source; what tells nothing is left out."""

from headwater.model import Item
from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from headwater.store.reading.items import ItemChange, write_items
from headwater.store.reports.delays import SAMPLED, quantile, sample_delays, source_delays
from tests.clock import NOON


def fill(store: Store, delays: dict[str, float], *, created_at: float = NOON - 1e6) -> int:
    with store.writing() as connection:
        source = add_source(
            connection, name="one", type="rss.feed", url=f"https://one.example/{created_at}", now=created_at
        )
        for name, delay in delays.items():
            item = Item(name, title=name, published_at=NOON - delay)
            change = ItemChange("new", item, name.encode(), name.encode(), (), b"h", NOON)
            write_items(connection, [(source.id, (change,), NOON)])
        return source.id


def test_delays_of_a_source_are_sorted_and_bounded_below(store: Store) -> None:
    source_id = fill(store, {"a": 600.0, "b": 60.0, "early": -60.0})
    with store.reading() as connection:
        assert source_delays(connection, source_id) == [0.0, 60.0, 600.0]


def test_what_was_published_before_its_source_was_added_tells_nothing(store: Store) -> None:
    source_id = fill(store, {"old": 600.0, "new": 60.0}, created_at=NOON - 300.0)
    with store.reading() as connection:
        assert source_delays(connection, source_id) == [60.0]
        assert sample_delays(connection, NOON - 10, NOON + 10, 1) == [[60.0]]


def test_a_span_is_sampled_part_by_part(store: Store) -> None:
    fill(store, {str(number): 60.0 + number for number in range(SAMPLED + 5)})
    with store.reading() as connection:
        parts = sample_delays(connection, NOON - 3_600, NOON + 3_600, 2)
    assert [len(part) for part in parts] == [0, SAMPLED]


def test_quantile_of_sorted_values() -> None:
    values = [float(number) for number in range(20)]
    assert (quantile(values, 0.5), quantile(values, 0.95), quantile([], 0.5)) == (10.0, 19.0, None)

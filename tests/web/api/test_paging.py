"""Pages: every row once, whatever comes or goes in between, and no cursor breaks anything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from headwater.errors import InputError
from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from headwater.store.core.paging import one_page
from headwater.store.core.tables import sources
from headwater.web.api.paging import decode_cursor, encode_cursor, split_page

WHOLE = st.integers(-(2**63), 2**63 - 1)
TIME = st.floats(-1e18, 1e18, allow_nan=False)


@given(TIME, WHOLE)
def test_a_cursor_means_the_place_it_was_made_from(at: float, number: int) -> None:
    assert decode_cursor(encode_cursor(number), int) == (number,)
    assert decode_cursor(encode_cursor(at, number), float, int) == (at, number)


@given(st.text(max_size=50) | st.binary(max_size=30).map(lambda data: encode_cursor(*data)))
def test_any_text_is_a_place_or_a_clear_error(text: str) -> None:
    try:
        place = decode_cursor(text, float, int)
    except InputError as error:
        assert "is invalid" in str(error)
    else:
        assert place is not None and [type(value) for value in place] == [float, int]


@pytest.mark.parametrize("place", [(1.5,), (True,), (2**63,), (1, 2), ()])
def test_a_place_of_another_kind_is_refused(place: tuple[float, ...]) -> None:
    with pytest.raises(InputError):
        decode_cursor(encode_cursor(*place), int)


@pytest.mark.parametrize("newest_first", [False, True])
def test_every_row_is_on_one_page(store: Store, newest_first: bool) -> None:
    with store.writing() as connection:
        ids = [
            add_source(
                connection, name="x", type="rss.feed", url=f"https://{n}.example/", now=float(n // 3)
            ).id
            for n in range(10)
        ]
        seen: list[int] = []
        after, pages = None, 0
        while True:
            query = select(sources.c.created_at, sources.c.id)
            columns = [sources.c.created_at, sources.c.id]
            found = connection.execute(
                one_page(query, columns, after=after, limit=4, newest_first=newest_first)
            ).all()
            page, cursor = split_page(found, 4, lambda row: (row.created_at, row.id))
            seen += [row.id for row in page]
            pages += 1
            if cursor is None:
                break
            after = decode_cursor(cursor, float, int)
    assert pages == 3
    assert seen == (ids[::-1] if newest_first else ids)

"""An open database keeps what is stored in it to itself."""

import traceback

import pytest
from sqlalchemy import text

from headwater.errors import StoreError
from headwater.store.database import Store


def test_no_traceback_shows_what_was_to_be_stored(store: Store) -> None:
    secret = "-".join(["hush"] * 2)  # in no line of this file, which a traceback quotes
    with pytest.raises(StoreError) as caught, store.writing() as connection:
        connection.execute(text("INSERT INTO nowhere VALUES (:config)"), {"config": secret})
    assert "hush-hush" not in "".join(traceback.format_exception(caught.value))

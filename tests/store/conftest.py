"""Databases for tests that need two of them, and one in which every table has rows."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.store.core.database import Store
from headwater.store.core.tables import metadata
from headwater.store.reading.positions import take_positions
from tests.databases import postgres_database
from tests.rows import fill


@pytest.fixture(params=["sqlite", "postgresql"])
def other_url(request: pytest.FixtureRequest, tmp_path: Path, worker_name: str) -> Iterator[str]:
    """A second database, without tables."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'other.db'}"
    else:
        with postgres_database(request.getfixturevalue("postgres_url"), f"{worker_name}_other") as url:
            yield url


@pytest.fixture
def full(store: Store) -> Store:
    with store.writing() as connection:
        fill(connection, metadata)
        take_positions(connection, 50)
    return store

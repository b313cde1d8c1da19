"""An archive of 5,000 items is read back in one command, however often that is killed."""

import signal
import time
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import func, select

from headwater.store.core.database import Store
from headwater.store.core.tables import item_versions, items
from tests.collect.test_archive import Archive
from tests.command import Headwater
from tests.leases import leases
from tests.origin import Origin

pytestmark = pytest.mark.slow

ITEMS = 5_000
KILLS = 12


@pytest.mark.timeout(600)
def test_archive_of_5000_items_is_read_back_over_kills(
    tmp_path: Path, database_url: str, origin: Origin, rng: Random
) -> None:
    archive = Archive(origin, ITEMS, per_document=50)
    command = Headwater(tmp_path, database_url)
    command.ok("source", "add", archive.url)
    for _ in range(KILLS):
        seen = len(origin.requests)
        process = command.start("source", "read-back", "1")
        deadline = time.monotonic() + 30
        while len(origin.requests) == seen and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL, "kills must hit it at work"
    told = command.json("source", "read-back", "1")
    assert told == {"source_id": 1, "documents": ITEMS // 50, "items": ITEMS - 50}
    with Store.open(database_url) as store, store.reading() as connection:
        assert connection.execute(select(func.count()).select_from(items)).scalar_one() == ITEMS
        titles = select(func.count(items.c.title.distinct()))
        assert connection.execute(titles).scalar_one() == ITEMS
        assert connection.execute(select(func.count()).select_from(item_versions)).scalar_one() == 0
        assert leases(store) == {}
    # A document may have been asked for again, once for each kill, and none more often.
    assert len(origin.requests) <= ITEMS // 50 + KILLS + 1

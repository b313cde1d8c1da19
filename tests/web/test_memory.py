"""A process that serves does not grow with what it is asked."""

import http.client
import time
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from headwater.sources.adding import add_unvisited, read_new_source
from headwater.store.core.database import Store
from headwater.store.people.keys import add_key
from tests.collect.test_engine import rss
from tests.command import Headwater
from tests.origin import Origin

pytestmark = pytest.mark.slow

SOURCES, ITEMS = 30, 20
WARMING = 40  # rounds of all paths: everything is loaded, every connection has prepared its statements
ROUNDS = 60
MOST_BYTES = (
    4 << 20
)  # for all the rounds: a tenth of it is usual, and the allocator takes a megabyte at a time
PATHS = (
    "/",
    "/items",
    "/items?search=text",
    "/runs",
    "/sources",
    "/sources/{number}",
    "/api/collector/status?limit=100",
    "/api/raw-items",
    "/api/sources",
    "/metrics",
)


def test_serving_takes_no_more_memory_after_many_requests(
    database_url: str, tmp_path: Path, origin: Origin
) -> None:
    with Store.open(database_url) as store, store.writing() as connection:
        _, key = add_key(connection, name="test", scopes=["read"], now=time.time())
        for number in range(SOURCES):
            origin.route(f"/{number}", body=rss(*range(ITEMS)))
            add_unvisited(connection, read_new_source(origin.url(f"/{number}")), time.time())
    serving = Headwater(tmp_path, database_url).start("serve", HEADWATER_PORT="0")
    assert serving.stdout is not None
    address = urlsplit(serving.stdout.readline().split()[-1])
    caller = http.client.HTTPConnection(str(address.hostname), address.port, timeout=30)

    def memory_after(rounds: int) -> int:
        for number in range(rounds):
            for path in PATHS:
                caller.request(
                    "GET",
                    path.format(number=number % SOURCES + 1),
                    headers={"Authorization": f"Bearer {key}"},
                )
                answer = caller.getresponse()
                answer.read()
                assert answer.status == 200, path
        return int(psutil.Process(serving.pid).memory_full_info().uss)

    try:
        with closing(caller):
            before = memory_after(WARMING)
            grown = memory_after(ROUNDS) - before
    finally:
        serving.terminate()
        serving.communicate(timeout=60)
    assert grown < MOST_BYTES, f"{grown / (1 << 20):.1f} MB"

"""What results take and cost, on SQLite and PostgreSQL: `python -m benchmarks.results`.

The same items are stored twice, once alone and once with four results each (full text, summary, translation,
analysis), and indexed. Told are the bytes of an item and of a result, with their indexes and the search's own, and what
a search takes with the results in it, compared with the items alone. `--items 250000` makes a million results. Times
are CPU time of this process and of the database, so that other work on the machine does not count.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from sqlalchemy import Connection
from tests.databases import postgres_server

from benchmarks.engine.databases import new_database, server_clock
from benchmarks.reading import fill_items, vacuum
from benchmarks.storage import size
from benchmarks.verdict import Verdict
from headwater.model import Result
from headwater.store.core.database import Store
from headwater.store.core.tables import items
from headwater.store.reading.listing import newest_items
from headwater.store.reading.results import NewResult, write_results
from headwater.store.reading.search import index_all
from headwater.store.reading.selection import Selection

KINDS = ("SQLite", "PostgreSQL")
BATCH = 2_000
SOURCES = 500
PAGE = 50
MOST_TIMES_ITEMS_ALONE = 2.0
VOCABULARY = 20_000
TRANSLATED = "河水上涨，港口因此关闭，居民被疏散到附近的学校和体育馆。"
NOW = 1_800_000_000.0


def sentence(rng: Random, words: int) -> str:
    """Words of which few are frequent and many rare, as in a language."""
    return " ".join(f"w{int(VOCABULARY ** rng.random())}" for _ in range(words))


def write_texts(store: Store, count: int) -> None:
    """Give every item a title and a summary."""
    rng = Random(1)
    for first in range(1, count + 1, BATCH):
        rows = [
            {"n": number, "t": sentence(rng, 8), "s": sentence(rng, 30)}
            for number in range(first, min(first + BATCH, count + 1))
        ]
        with store.writing() as connection:
            for row in rows:
                connection.execute(
                    items.update().where(items.c.id == row["n"]).values(title=row["t"], summary=row["s"])
                )


def results_of(rng: Random, item_id: int) -> Iterator[NewResult]:
    made = (
        Result("full_text", body="".join(f"<p>{sentence(rng, 40)}.</p>" for _ in range(3)), format="html"),
        Result("summary", body=sentence(rng, 25)),
        Result("translation", "zh", body=TRANSLATED * 2, language="zh", data={"title": TRANSLATED}),
        Result("analysis", data={"topic": sentence(rng, 2), "people": [sentence(rng, 2)], "points": 7}),
    )
    for index, result in enumerate(made):
        yield NewResult(item_id, 1, result, NOW, run_id=item_id, template_id=1, step_index=index)


def write_all_results(store: Store, count: int) -> int:
    """Four results for each item, as a worker writes them; how many that is."""
    rng, written = Random(2), 0
    for first in range(1, count + 1, BATCH):
        numbers = range(first, min(first + BATCH, count + 1))
        made = [each for number in numbers for each in results_of(rng, number)]
        with store.writing() as connection:
            write_results(connection, made)
        written += len(made)
    return written


QUERIES = {
    "a rare word": "w19001",
    "a frequent word": "w40",
    "two words": "w40 w300",
    "a phrase": '"w5 w9"',
    "a word and without another": "w1000 -w40",
}


def search(connection: Connection, query: str) -> int:
    return len(newest_items(connection, Selection(search=query), limit=PAGE))


def times_of(store: Store, clock: Callable[[], float], repeat: int) -> dict[str, float]:
    """The CPU seconds of each search: the median."""

    def spent() -> float:
        return time.process_time() + clock()

    found = {}
    for name, query in QUERIES.items():
        seconds = []
        for _ in range(repeat):
            with store.reading() as connection:
                before = spent()
                search(connection, query)
                seconds.append(spent() - before)
        found[name] = statistics.median(seconds)
    return found


def compare(
    kind: str, directory: Path, server_url: str, options: argparse.Namespace, verdict: Verdict
) -> None:
    clock = server_clock(kind, server_url)
    with new_database(kind, directory, server_url) as url, Store.open(url) as store:
        empty = size(store)
        fill_items(store, SOURCES, options.items)
        write_texts(store, options.items)
        index_all(store, NOW)
        vacuum(store)
        alone = size(store)
        verdict.tell(f"{kind}: an item", (alone - empty) / options.items, " B")
        before = times_of(store, clock, options.repeat)
        count = write_all_results(store, options.items)
        index_all(store, NOW)
        vacuum(store)
        verdict.tell(f"{kind}: a result", (size(store) - alone) / count, " B")
        after = times_of(store, clock, options.repeat)
        for name in QUERIES:
            told = f"{kind}: search over {count:,} results, {name}"
            verdict.tell(told, 1_000 * after[name], " ms")
        ratio = sum(after.values()) / sum(before.values())
        verdict.tell(f"{kind}: search, times over items alone", ratio, "×", most=MOST_TIMES_ITEMS_ALONE)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--items", type=int, default=20_000, help="each has four results")
    arguments.add_argument("--repeat", type=int, default=11, help="searches of each sort; the median counts")
    arguments.add_argument("--only", choices=KINDS, default=None)
    options = arguments.parse_args()
    verdict = Verdict("results")
    with postgres_server() as server_url, tempfile.TemporaryDirectory() as directory:
        for kind in KINDS if options.only is None else (options.only,):
            compare(kind, Path(directory), server_url, options, verdict)
    return verdict.exit_code()


if __name__ == "__main__":
    sys.exit(main())

"""Every kind of hostile origin at once, and one healthy feed among them that must not notice."""

import contextlib
import sys
import time
import zlib
from pathlib import Path

import brotli
import pytest
from sqlalchemy import select

from headwater.sources.adding import add_unvisited, read_new_source
from headwater.store.collecting.sources import list_sources
from headwater.store.core.database import Store
from headwater.store.core.tables import collection_records, sources
from tests.command import Headwater
from tests.origin import Answer, Origin

pytestmark = pytest.mark.slow

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MEGABYTE = 1 << 20
BOMB_MEGABYTES = 200
DEADLINE_SECONDS = 12
PEAK_MEGABYTES = 300
MANY_ITEMS = 50_000
MOST_ITEMS = 5_000  # of one document, by default

HEALTHY = (
    b'<rss version="2.0"><channel><title>Healthy</title>'
    b"<item><title>Good news</title><guid>1</guid></item></channel></rss>"
)


def packed(encoding: str) -> bytes:
    """BOMB_MEGABYTES of nothing, compressed without holding them."""
    zeros = bytes(MEGABYTE)
    if encoding == "br":
        brotlied = brotli.Compressor(quality=3)
        return b"".join([*(brotlied.process(zeros) for _ in range(BOMB_MEGABYTES)), brotlied.finish()])
    if encoding == "zstd":
        squeezed = zstd.ZstdCompressor()
        return b"".join([*(squeezed.compress(zeros) for _ in range(BOMB_MEGABYTES)), squeezed.flush()])
    zipped = zlib.compressobj(1, wbits=31)
    return b"".join([*(zipped.compress(zeros) for _ in range(BOMB_MEGABYTES)), zipped.flush()])


def bomb(encoding: str) -> Answer:
    return Answer(packed(encoding), headers={"Content-Encoding": encoding})


def rss(inside: str | bytes) -> bytes:
    inside = inside.encode() if isinstance(inside, str) else inside
    return b'<rss version="2.0"><channel><title>x</title>' + inside + b"</channel></rss>"


def peak_megabytes(pid: int) -> float:
    """The most memory a process has held so far. (Its rusage would count what its parent held at the fork.)"""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0


LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9))
    + ']><rss version="2.0"><channel><title>&j;</title><item><title>&j;</title></item></channel></rss>'
)
# What each path answers, and the kinds of failure that are right for it ("" where reading it is right).
CASES: dict[str, tuple[Answer, set[str]]] = {
    "endless": (Answer(b"<rss>" * 10_000, fault="endless"), {"too_large", "timeout"}),
    "drip": (Answer(HEALTHY, fault="drip"), {"timeout"}),
    "drip-headers": (Answer(HEALTHY, fault="drip-headers"), {"timeout"}),
    "hang": (Answer(fault="hang"), {"timeout"}),
    "gzip-bomb": (bomb("gzip"), {"too_large"}),
    "br-bomb": (bomb("br"), {"too_large"}),
    "zstd-bomb": (bomb("zstd"), {"too_large"}),
    "laughs": (Answer(LAUGHS), {"", "malformed", "not_a_feed"}),
    "deep": (Answer(rss("<a>" * 100_000)), {"", "malformed", "not_a_feed"}),
    "title": (Answer(rss(b"<item><title>" + b"x" * 50 * MEGABYTE + b"</title></item>")), {"too_large"}),
    "long-length": (Answer(HEALTHY, fault="long-length"), {"broken"}),
    "short-length": (Answer(HEALTHY, fault="short-length"), {"broken", "malformed", "not_a_feed", ""}),
    "cut-chunk": (Answer(HEALTHY, fault="cut-chunk"), {"broken"}),
    "garbage": (Answer(fault="garbage"), {"broken"}),
    "header-flood": (Answer(fault="header-flood"), {"broken", "timeout"}),
    "long-header": (Answer(fault="long-header"), {"broken", "timeout"}),
    "reset": (Answer(fault="reset"), {"broken", "connect"}),
    "loop": (Answer(status=302, location="/loop"), {"redirect"}),
    "inwards": (Answer(status=302, location="http://10.0.0.1/feed"), {"blocked"}),
    "metadata": (Answer(status=302, location="http://169.254.169.254/latest/"), {"blocked"}),
    "html": (Answer("<!doctype html><html><body>hi</body></html>", content_type="text/html"), {"not_a_feed"}),
    "empty": (Answer(b""), {"malformed", "not_a_feed"}),
    "bad-utf8": (Answer(rss(b"<item><title>\xff\xfe\x80 caf\xc3</title><guid>1</guid></item>")), {""}),
    "nul": (Answer(rss(b"<item><title>a\x00b</title><guid>1</guid></item>")), {""}),
    "many": (
        Answer(rss("".join(f"<item><title>t{n}</title><guid>{n}</guid></item>" for n in range(MANY_ITEMS)))),
        {""},
    ),
}


@pytest.mark.timeout(240)
def test_one_healthy_feed_among_all_the_hostile(tmp_path: Path, database_url: str) -> None:
    command = Headwater(tmp_path, database_url)
    command.environment |= {
        "HEADWATER_ALLOW_HOSTS": "127.0.0.0/8",
        "HEADWATER_VISIT_TIMEOUT_SECONDS": str(DEADLINE_SECONDS),
        "HEADWATER_HOST_CONCURRENCY": "20",
    }
    with (
        Store.open(database_url) as store,
        Origin() as hostile,
        Origin(host="127.0.0.2") as healthy,
        Origin(tls="expired") as expired,
        Origin(tls="self-signed") as self_signed,
    ):
        expected = {name: kinds for name, (_, kinds) in CASES.items()}
        urls = {name: hostile.route(f"/{name}", answer) for name, (answer, _) in CASES.items()}
        for name, origin in (("expired", expired), ("self-signed", self_signed)):
            urls[name], expected[name] = origin.route("/feed", body=HEALTHY), {"tls"}
        urls["healthy"], expected["healthy"] = healthy.route("/feed", body=HEALTHY), {""}
        with store.writing() as connection:
            for name, url in urls.items():
                add_unvisited(connection, read_new_source(url, name=name), time.time())

        process = command.start("collect", "--json")
        started_at = time.time()
        peak = 0.0
        while process.poll() is None:
            peak = max(peak, peak_megabytes(process.pid))
            time.sleep(0.05)
        took = time.time() - started_at
        _, errors = process.communicate()
        assert (process.returncode, errors) == (0, "")

        with store.reading() as connection:
            visited = {source.name: source for source in list_sources(connection)}
            (healthy_at,) = connection.execute(
                select(collection_records.c.finished_at).join(sources).where(sources.c.name == "healthy")
            ).one()
            counted = select(sources.c.name, collection_records.c.items_new).join(
                collection_records, collection_records.c.source_id == sources.c.id
            )
            items_new = {row.name: row.items_new for row in connection.execute(counted)}
            said = connection.execute(
                select(collection_records.c.error_message).join(sources).where(sources.c.name == "many")
            ).scalar_one()
    kinds = {name: str(source.last_error_kind or "") for name, source in visited.items()}
    wrong = {name: kinds[name] for name in expected if kinds[name] not in expected[name]}
    assert wrong == {}
    assert all(source.last_error for source in visited.values() if source.last_error_kind), (
        "each error says what"
    )
    assert (items_new["healthy"], items_new["many"], items_new["nul"]) == (1, MOST_ITEMS, 1)
    assert f"{MANY_ITEMS - MOST_ITEMS}" in said, "the visit says how many items were left out"
    assert healthy_at - started_at < DEADLINE_SECONDS, "the healthy feed does not wait for the hostile ones"
    assert took < 5 * DEADLINE_SECONDS
    print(f"peak {peak:.0f} MB, {took:.1f} s, healthy after {healthy_at - started_at:.1f} s")
    assert 0 < peak < PEAK_MEGABYTES

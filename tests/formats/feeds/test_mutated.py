"""Ten thousand mutated feeds: each is read or refused, soon, and in little memory."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from tests.formats.feeds.test_damage import FEEDS, JSON
from tests.formats.feeds.test_extras import ITEM_ELEMENTS, podcast

SEEDS = (*FEEDS.values(), JSON, podcast("".join(markup for markup, _, _ in ITEM_ELEMENTS)))
COUNT = 10_000
MOST_MILLISECONDS = 200
MOST_BYTES = 130_000_000
PROGRAM = """
import pickle
import sys
import time
from pathlib import Path
from random import Random

from headwater.errors import ParseError
from headwater.formats.feeds.parse import parse

SEEDS = pickle.loads(Path(sys.argv[1]).read_bytes())
PARTS = (b"<", b">", b"&", b'"', b"'", b"]]>", b"<![CDATA[", b"<!--", b"-->", b"</", b"/>", b"<?xml ", b"<!DOCTYPE x [",
         b"<item>", b"</item>", b"<entry>", b"</channel>", b"&#0;", b"&#xd800;", b"&amp", b"{", b"}", b"[", b"]", b",",
         bytes(1), bytes((255, 254)), bytes((239, 187, 191)), bytes((92,)), b" xmlns=''", b" xmlns:a='b'")


def mutate(data, rng):
    for _ in range(rng.choice((1, 2, 5, 20, 100))):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.choice((0, 0, 1, 3, 20, 500)))
        other = rng.choice(SEEDS)
        place = rng.randrange(len(other))
        pieces = (b"", rng.randbytes(rng.randrange(1, 6)), rng.choice(PARTS), rng.choice(PARTS) * rng.randrange(200),
                  data[start:end] * 3, other[place : place + rng.randrange(500)])
        data = data[:start] + rng.choice(pieces) + data[end:]
    return data


def seconds(data):
    begun = time.process_time()
    try:
        parse(data, url="https://e.org/feed")
    except ParseError:
        pass
    return time.process_time() - begun


rng = Random(20)
slowest = 0.0
for _ in range(int(sys.argv[2])):
    data = mutate(rng.choice(SEEDS), rng)
    taken = seconds(data)
    slowest = max(slowest, min(taken, seconds(data), seconds(data)) if taken > 0.1 else taken)
held = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(round(slowest * 1000), held)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.timeout(600)
def test_mutated_feed_is_read_or_refused_in_bounds(tmp_path: Path) -> None:
    seeds = tmp_path / "seeds"
    seeds.write_bytes(pickle.dumps(SEEDS))
    command = [sys.executable, "-c", PROGRAM, str(seeds), str(COUNT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    milliseconds, kilobytes = map(int, done.stdout.split())
    assert milliseconds <= MOST_MILLISECONDS
    assert kilobytes * 1024 <= MOST_BYTES

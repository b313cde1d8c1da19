"""How many examples Hypothesis tries: all in the ring of `make test-all`, a quarter in the quick one."""

import os

QUICK = os.environ.get("HEADWATER_TEST_RING") != "all"


def examples(count: int) -> int:
    return max(10, count // 4) if QUICK else count

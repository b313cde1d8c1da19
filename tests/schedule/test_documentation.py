"""The example in docs/scheduling.md is run as it stands there."""

import re
from pathlib import Path
from typing import Any

from tests.histories import DAY, MONDAY, even

DOCUMENT = Path(__file__).parents[2] / "docs" / "scheduling.md"


def test_the_example_works_and_takes_ten_lines() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(example.split("def ")[1].strip().splitlines()) <= 10
    names: dict[str, Any] = {}
    exec(example, names)  # noqa: S102 - our own documentation
    times = even(10, 30)
    delays = names["replay"](times, MONDAY + 10 * DAY, MONDAY + 30 * DAY, 750.0)
    assert len(delays) > 150
    assert min(delays) >= 0 and sum(delays) / len(delays) < 5400


def test_the_pictures_are_there() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for name in re.findall(r"\(images/([^)]+)\)", text):
        assert (DOCUMENT.parent / "images" / name).read_text(encoding="utf-8").startswith("<svg")

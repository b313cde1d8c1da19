"""Two texts compared word by word, in a time that does not depend on who wrote them.

Myers' way: the shortest list of words to take out and put in is looked for, up to so many. Texts that differ in more
are shown as a whole, the old and the new.
"""

import re
from typing import Literal

COMPARED_CHARACTERS = 20_000
COMPARED_WORDS = 4_000
MOST_DIFFERENCES = 600  # words; looking for more takes the square of it

Kind = Literal["same", "gone", "come"]
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")


def compare(old: str, new: str) -> list[tuple[Kind, str]]:
    """Two texts as runs of ("same" | "gone" | "come", text), word by word."""
    before, after = _words(old), _words(new)
    start = _shared_length(before, after)
    end = _shared_length(before[start:][::-1], after[start:][::-1])
    gone, come = before[start : len(before) - end], after[start : len(after) - end]
    steps: list[tuple[Kind, str]] = [("same", word) for word in before[:start]]
    steps += _shortest(gone, come) or [("gone", word) for word in gone] + [("come", word) for word in come]
    steps += [("same", word) for word in before[len(before) - end :]]
    return _joined(steps)


def _words(text: str) -> list[str]:
    return _WORDS.findall(text[:COMPARED_CHARACTERS])[:COMPARED_WORDS]


def _shared_length(one: list[str], other: list[str]) -> int:
    """How many words both begin with."""
    length = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        length += 1
    return length


def _shortest(old: list[str], new: list[str]) -> list[tuple[Kind, str]] | None:
    """The shortest way from one list to the other; None when it takes too long to find."""
    reached = {1: 0}  # how far into `old` each diagonal has come
    trail: list[dict[int, int]] = []
    for differences in range(min(len(old) + len(new), MOST_DIFFERENCES) + 1):
        trail.append(dict(reached))
        for diagonal in range(-differences, differences + 1, 2):
            down = diagonal == -differences or (
                diagonal != differences and reached[diagonal - 1] < reached[diagonal + 1]
            )
            x = reached[diagonal + 1] if down else reached[diagonal - 1] + 1
            while x < len(old) and x - diagonal < len(new) and old[x] == new[x - diagonal]:
                x += 1
            reached[diagonal] = x
            if x >= len(old) and x - diagonal >= len(new):
                return _walk_back(old, new, trail)
    return None


def _walk_back(old: list[str], new: list[str], trail: list[dict[int, int]]) -> list[tuple[Kind, str]]:
    x, y = len(old), len(new)
    steps: list[tuple[Kind, str]] = []
    for differences in range(len(trail) - 1, -1, -1):
        reached, diagonal = trail[differences], x - y
        down = diagonal == -differences or (
            diagonal != differences and reached[diagonal - 1] < reached[diagonal + 1]
        )
        before_x = reached[diagonal + 1] if down else reached[diagonal - 1]
        before_y = before_x - (diagonal + 1 if down else diagonal - 1)
        while x > max(before_x, 0) and y > max(before_y, 0):
            x, y = x - 1, y - 1
            steps.append(("same", old[x]))
        if differences:
            steps.append(("come", new[before_y]) if down else ("gone", old[before_x]))
        x, y = before_x, before_y
    return steps[::-1]


def _joined(steps: list[tuple[Kind, str]]) -> list[tuple[Kind, str]]:
    """Words that follow each other in one run; of what changed in one place, first what is gone."""
    runs: list[tuple[Kind, str]] = []
    gone: list[str] = []
    come: list[str] = []
    same: list[str] = []
    for kind, word in [*steps, ("same", "")]:
        if kind == "same":
            if gone or come:
                runs += [("gone", "".join(gone))] if gone else []
                runs += [("come", "".join(come))] if come else []
                gone, come = [], []
            same.append(word)
        else:
            if same:
                runs.append(("same", "".join(same)))
                same = []
            (gone if kind == "gone" else come).append(word)
    if "".join(same):
        runs.append(("same", "".join(same)))
    return runs

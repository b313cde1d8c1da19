"""The words that texts, comments and names here avoid: `make lint` lists every line that has one.

Short sentences, the actor first, the usual word for the usual thing. What is frozen or foreign is not read.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# What to avoid, as a regular expression, and what to say instead.
AVOIDED = {
    r"whoever|whomever|whosoever": "name the actor: the worker, the caller, your key",
    r"somebody|nobody|anybody|everybody": "name the actor, or: a user, no one, anyone, everyone",
    r"one who|those who|that which": "name the actor: the reader, the caller, the threads that wait",
    r"anew": "again",
    r"(?:is|are|was|were) tried again|tried anew": "is retried",
    r"(?:has|have|had) not the": "lacks the",
    r"(?<!there )(?:is|are|was|were)\x20no(?=\x20\w)(?!\x20(?:longer|more|one|less|other)\b)": "is not a",
    r"of (?:its|their|your|his|her) own": "its own …, a separate …, or nothing",
    r"by (?:itself|themselves)": "automatically, alone, or nothing",
    r"answers (?:how|whether|none|nothing)": "returns",
    r"(?:items|rows|records|sessions|files|copies|deliveries) go(?! (?:on|into|to|out|with)\b)": "are deleted",
    r"switched off": "paused, disabled",
    r"leases? (?:runs?|ran|has run|have run) out": "expires",
    r"errands?": "FetchRequest",
    r"surroundings": "VisitContext",
    r"likenesses_of_strangers": "fallback_ids",
    r"patiently": "retry_on_disconnect",
}
READ = (".py", ".md", ".html", ".js", ".css", ".toml", ".yaml", ".yml", ".sh", ".conf")
# Migrations are frozen; the corpora of tests are what others wrote; the reference is made from the code.
LEFT_OUT = ("src/headwater/store/migrations/versions/", "tests/data/", "docs/reference/", "tests/words.py")

_AVOIDED = {
    # A name of several words has underscores where a sentence has spaces.
    re.compile(rf"(?<![a-z])(?:{pattern.replace(' ', '[ _]')})(?![a-z])", re.IGNORECASE): better
    for pattern, better in AVOIDED.items()
}


def avoided_in(text: str) -> Iterator[tuple[int, str, str]]:
    """The number of each line with a word to avoid, the word, and what to say instead."""
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, better in _AVOIDED.items():
            if found := pattern.search(line):
                yield number, found[0], better


def files() -> list[Path]:
    """The texts of this checkout."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    names = sorted(set(listed.stdout.splitlines()))
    return [ROOT / name for name in names if name.endswith(READ) and not name.startswith(LEFT_OUT)]


def main() -> int:
    count = 0
    for path in files():
        if not path.is_file():
            continue
        for number, word, better in avoided_in(path.read_text(encoding="utf-8")):
            count += 1
            print(f"{path.relative_to(ROOT)}:{number}: {word!r}: {better}")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())

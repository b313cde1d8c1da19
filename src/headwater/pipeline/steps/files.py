"""Files that steps keep: finished or not there at all, and swept away when they are old or too many."""

import contextlib
import os
import re
import time
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import orjson

NOTE = ".json"  # beside a finished file: what is known of it
UNFINISHED = ".part"  # a directory in which a file is being made
_OURS = re.compile(r"[0-9a-f]{32}\.")


def name_for(key: str) -> str:
    """A file name for an idempotency key: every attempt at the same work has the same."""
    return blake2b(key.encode(), digest_size=16).hexdigest()


def write_note(path: Path, note: dict[str, object]) -> None:
    """Write a file's note whole or not at all; from then on the file counts as finished."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(orjson.dumps(note))
    temporary.replace(path)


def read_note(path: Path) -> dict[str, object] | None:
    try:
        note = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    return note if isinstance(note, dict) else None


def sweep(
    directory: Path, *, max_age_seconds: float | None, max_bytes: int | None, keep: Path | None = None
) -> int:
    """Remove our files older than that, then the oldest until the rest fits; how many went. `keep` stays.

    What else lies there is not touched. What another process removes at the same time is none of our business, and
    neither is what it is just making: an unfinished file is left alone until it is old.
    """
    now = time.time()
    found = sorted(_ours(directory))
    total = sum(size for _, size, _ in found)
    removed = 0
    for at, size, path in found:
        too_old = max_age_seconds is not None and now - at > max_age_seconds
        too_many = max_bytes is not None and total > max_bytes and not path.parent.name.endswith(UNFINISHED)
        if path == keep or not (too_old or too_many):
            continue
        with contextlib.suppress(OSError):
            path.unlink()
            removed += 1
            total -= size
            path.with_name(path.stem + NOTE).unlink(missing_ok=True)
            path.parent.rmdir()  # when it was the last
    return removed


def _ours(directory: Path) -> Iterator[tuple[float, int, Path]]:
    """The files that were named by `name_for`, or are being made in a directory so named: time, size and path."""
    for folder, _, names in os.walk(directory):
        for name in names:
            path = Path(folder) / name
            unfinished = path.parent.name.endswith(UNFINISHED)
            if (_OURS.match(path.parent.name if unfinished else name)) and path.suffix != NOTE:
                with contextlib.suppress(OSError):
                    status = path.lstat()
                    yield status.st_mtime, status.st_size, path

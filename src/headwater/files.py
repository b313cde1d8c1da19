"""Files that are there whole or not at all, and files that only their owner reads."""

import glob
import logging
import os
import secrets
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from headwater.errors import InputError

log = logging.getLogger(__name__)

STALE_SECONDS: Final = 3_600.0
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO  # what all but the owner may do


def write_whole(path: Path, document: bytes | Iterable[bytes], *, make_directory: bool = False) -> bool:
    """Put a document in its place in one step. A file that says the same is left alone: False.

    It is made beside its place under a name that cannot be guessed and laid a link under.
    """
    beside = path.parent / f".{path.name}.{secrets.token_hex(8)}.part"
    try:
        if isinstance(document, bytes) and path.is_file() and path.read_bytes() == document:
            return False
        if make_directory:
            path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path)
        try:
            with beside.open("xb") as file:
                file.writelines((document,) if isinstance(document, bytes) else document)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        except BaseException:
            with suppress(OSError):
                beside.unlink()
            raise
    except OSError as error:
        raise InputError(
            "cannot write {path}: {problem}", path=path, problem=error.strerror or error
        ) from None
    return True


def _sweep(path: Path) -> None:
    """Remove what processes that were killed here left behind."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        with suppress(OSError):
            if left.lstat().st_mtime < time.time() - STALE_SECONDS:
                left.unlink()


def make_private_directory(path: Path) -> None:
    """Make a directory that only its owner may look into; the directories above it too, if they are missing."""
    for missing in reversed([each for each in (path, *path.parents) if not each.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


def open_private(path: Path) -> None:
    """Make a file that only its owner may read, unless it is there; raise OSError if it cannot be written."""
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600))


def readable_by_others(path: Path) -> bool:
    """Whether others than its owner may read a file or look into a directory of ours. What all share is not ours."""
    try:
        found = path.stat()
    except OSError:
        return False
    return bool(found.st_mode & OTHERS) and not found.st_mode & stat.S_ISVTX


def make_private(path: Path) -> None:
    """Take from others what they may do with a file or directory, and say so in the log."""
    if not readable_by_others(path):
        return
    try:
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~OTHERS)
    except OSError as error:
        log.warning("other users may read %s, and that cannot be changed: %s", path, error.strerror)
    else:
        log.warning("other users could read %s; now only its owner can", path)

"""Files that are there whole or not at all, whoever reads them meanwhile and whenever the process dies."""

import glob
import os
import secrets
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from headwater.errors import InputError

STALE_SECONDS: Final = 3_600.0


def write_whole(path: Path, document: bytes | Iterable[bytes], *, make_directory: bool = False) -> bool:
    """Put a document in its place in one step. A file that says the same is left alone: False.

    It is made beside its place under a name that nobody can have guessed and laid a link under.
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

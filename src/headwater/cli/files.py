"""Files that commands are given."""

import sys
from pathlib import Path

from headwater.errors import InputError


def read_text(file: str) -> str:
    """The text of a file, or of the standard input for `-`; InputError says why it cannot be read."""
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError("cannot read {path}: {problem}", path=file, problem=error.strerror) from None
    except UnicodeDecodeError:
        raise InputError("cannot read {path}: {problem}", path=file, problem="not UTF-8") from None

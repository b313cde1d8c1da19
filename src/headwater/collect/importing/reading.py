"""Opening whatever file somebody has: the file itself shows what it is."""

import gzip
import io
import zlib
from collections.abc import Callable
from pathlib import Path

from headwater.collect.importing.databases import read_database
from headwater.collect.importing.documents import (
    MAX_BYTES,
    read_csv,
    read_json,
    read_opml_list,
    read_ttrss,
    read_zip,
)
from headwater.collect.importing.export import Export, Program
from headwater.errors import ParseError

SQLITE = b"SQLite format 3\x00"
ZIP = b"PK\x03\x04"
GZIP = b"\x1f\x8b"
_BEGINNING = 2_000


def read_export(path: Path | None, data: bytes, program: Program | None = None) -> Export:
    """What is in `data`, which is the file at `path` if it is one. ParseError when it is not what `program` writes."""
    found = _read(path, data)
    if program is not None and found.program not in (program, _ALSO.get(program)):
        found.close()
        raise ParseError(
            "This was exported by {found}, not by {program}.", found=found.program, program=program
        )
    return found


# What a program gives besides a format of its own, so that somebody who names the program is right too.
_ALSO: dict[Program, Program] = {"freshrss": "opml", "miniflux": "opml", "tt-rss": "opml", "reader": "opml"}


def _read(path: Path | None, data: bytes) -> Export:
    if data.startswith(SQLITE):
        if path is None:
            raise ParseError("A database is read from a file; standard input takes the other formats.")
        return read_database(path)
    if data.startswith(ZIP):
        return read_zip(data)
    if data.startswith(GZIP):
        data = _gunzipped(data)
    return _reader_for(data)(data)


def _reader_for(data: bytes) -> Callable[[bytes], Export]:
    beginning = data[:_BEGINNING].lstrip(b"\xef\xbb\xbf \t\r\n")
    if beginning.startswith((b"{", b"[")):
        return read_json
    if beginning.startswith(b"<"):
        return read_ttrss if b"<articles" in beginning else read_opml_list
    if b"feed_url" in beginning.split(b"\n", 1)[0].lower():
        return read_csv
    return read_opml_list  # which says what is wrong with it


def _gunzipped(data: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            plain = file.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        raise ParseError("This file is damaged: it cannot be decompressed.") from None
    if len(plain) > MAX_BYTES:
        raise ParseError("This file holds more than {size} bytes.", size=MAX_BYTES)
    return plain

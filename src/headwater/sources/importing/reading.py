"""Opening a file of any kind: the file itself shows what it is."""

import gzip
import io
import zlib
from collections.abc import Callable
from pathlib import Path

from headwater.errors import ParseError
from headwater.sources.importing.databases import read_database
from headwater.sources.importing.documents import (
    most_unpacked,
    read_json,
    read_opml_list,
    read_table,
    read_ttrss,
    read_zip,
)
from headwater.sources.importing.export import Export, Program

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


# What a program gives besides its own format, so that naming the program is right too.
_ALSO: dict[Program, Program] = {"freshrss": "opml", "miniflux": "opml", "tt-rss": "opml", "reader": "opml"}


def _read(path: Path | None, data: bytes) -> Export:
    if not data.strip():
        raise ParseError("This file is empty.")
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
    return read_table  # which says what is wrong with it


def _gunzipped(data: bytes) -> bytes:
    most = most_unpacked(len(data))
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            plain = file.read(most + 1)
    except (OSError, EOFError, zlib.error):
        raise ParseError("This file is damaged: it cannot be decompressed.") from None
    if len(plain) > most:
        raise ParseError("This file holds more than {size} bytes.", size=most)
    return plain

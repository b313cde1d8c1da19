"""Where each number of an adaptive state lives, and how the state is packed into bytes.

A state is one flat vector of floats, so that the same mathematics runs on a plain list in production and on
an array when the simulator compiles it. Packed it takes less than 1 KB: the scalars as they are, the
histograms as whole grains, sixteenths of an event, which is what the mathematics counts them in.

A packed state carries its version and a checksum. Whatever does not read back exactly is no state at all.
"""

import struct
from collections.abc import Sequence
from zlib import crc32

LEVELS = 4  # memories of the rate ladder
SHAPES = 6  # shapes of the day that compete with the flat one
DAY_BINS = 144  # ten minutes each
BIN_SECONDS = 600.0
HOUR_BINS = 60  # the minutes of the hour
WEEK_BINS = 7

LAST_AT = 0  # the last successful visit
LAST_EVENT_AT = 1  # the newest item; 0 while there was none
BATCHES = 2  # decayed number of batches …
BATCH_ITEMS = 3  # … and of the items in them
WEIGHT_AT = 4  # the time at which a new event weighs exactly 1 in the histograms
WEIGHT = 5  # each histogram's total, in grains
WINDOW = 6  # how many items the source shows at once; 0 while unknown
SEEN_SINCE = 7  # from when on the source's items are known
COUNTS = 8
EXPOSURES = COUNTS + LEVELS
SHAPE_SCORES = EXPOSURES + LEVELS
WEEK_SCORE = SHAPE_SCORES + SHAPES
SCALARS = WEEK_SCORE + 1
DAY = SCALARS
HOUR = DAY + DAY_BINS
WEEK = HOUR + HOUR_BINS
SIZE = WEEK + WEEK_BINS

GRAINS = 16.0  # per event, in the histograms

_VERSION = 1
_HEADER = struct.Struct("<BI")
_BODY = struct.Struct(f"<{SCALARS}d{SIZE - SCALARS}H")
PACKED_BYTES = _HEADER.size + _BODY.size
SCALARS_OFFSET = _HEADER.size
GRAINS_OFFSET = SCALARS_OFFSET + 8 * SCALARS


def pack_state(vector: Sequence[float]) -> bytes:
    return add_header(_BODY.pack(*vector))


def add_header(body: bytes) -> bytes:
    """The packed state whose numbers are packed already."""
    return _HEADER.pack(_VERSION, crc32(body)) + body


def is_state(packed: bytes | None) -> bool:
    """Whether this is a state that can be trusted."""
    if packed is None or len(packed) != PACKED_BYTES:
        return False
    version, checksum = _HEADER.unpack_from(packed)
    return bool(version == _VERSION and crc32(memoryview(packed)[_HEADER.size :]) == checksum)


def unpack_state(packed: bytes | None) -> list[float] | None:
    """The state's vector, or None where there is none that can be trusted."""
    if packed is None or not is_state(packed):
        return None
    return list(_BODY.unpack_from(packed, _HEADER.size))

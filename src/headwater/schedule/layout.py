"""Where each number of an adaptive state is, and how a state is packed into bytes.

A state is one flat vector of floats, so that the same arithmetic runs on a list in the interpreter and on an array when
compiled. Packed it takes less than 1 KB: first the scalars, then the histograms as whole grains of 16 bits. A grain is
a sixteenth of an event.

A packed state carries its version and a checksum. Bytes that fail either check are not a state.
"""

import struct
from collections.abc import Sequence
from typing import Any
from zlib import crc32

Vector = Any  # list[float] in the interpreter, an array of doubles when compiled

LEVELS = 4  # memories of the rate ladder
SHAPES = 6  # shapes of the day that compete with the flat one
RULES = 4  # of summer time: none, Europe, North America, Australia
DAY_BINS = 144  # ten minutes each
BIN_SECONDS = 600.0
HOUR_BINS = 60  # the minutes of the hour
WEEK_BINS = 7

LAST_AT = 0  # last successful visit
LAST_EVENT_AT = 1  # newest event; 0 before the first
BATCHES = 2  # fading number of events …
BATCH_ITEMS = 3  # … and of the items in them
WEIGHT_AT = 4  # when a new event weighs exactly 1 in the histograms
WEIGHT = 5  # total of each histogram, in grains
WINDOW = 6  # number of items the source shows at once; 0: unknown
SEEN_SINCE = 7  # time from which the source's items are known
COUNTS = 8  # of the ladder: fading numbers of events …
EXPOSURES = COUNTS + LEVELS  # … and of seconds, weighted by the profile
SHAPE_SCORES = EXPOSURES + LEVELS  # log likelihood of each shape over the flat one
WEEK_SCORE = SHAPE_SCORES + SHAPES
MINUTE_SCORE = WEEK_SCORE + 1  # log likelihood of exact minutes over smoothed ones
BURST = MINUTE_SCORE + 1  # items per second at the last visit, if it found much of the window new
# By how much the stated times are ahead of the true ones, as far as the gaps between visits tell.
OFFSET = BURST + 1  # subtracted from every stated time
OFFSET_LOW = OFFSET + 1  # range of offsets that agree with all dates so far
OFFSET_HIGH = OFFSET_LOW + 1
FITS = OFFSET_HIGH + 1  # fading numbers of dates that agree with that range …
MISSES = FITS + 1  # … that do not …
OUTSIDE = MISSES + 1  # … and that cannot be true as stated
DISTRUST = OUTSIDE + 1  # 1: the dates are ignored
RULE = DISTRUST + 1  # summer-time rule that the histogram of the day follows
RULE_SCORES = RULE + 1  # log likelihood of each rule
GAP_MEAN = RULE_SCORES + RULES  # seconds between two events …
GAP_VARIANCE = GAP_MEAN + 1
GAP_COUNT = GAP_VARIANCE + 1  # … from so many gaps, fading
GAP_SCORE = GAP_COUNT + 1  # log likelihood of regular gaps over rate and profile
PRIOR = GAP_SCORE + 1  # events per second to assume before any were seen
SCALARS = PRIOR + 1
DAY = SCALARS
HOUR = DAY + DAY_BINS
WEEK = HOUR + HOUR_BINS
SIZE = WEEK + WEEK_BINS

GRAINS = 16.0  # per event, in the histograms

_VERSION = 3
_HEADER = struct.Struct("<BxxxI")  # eight bytes, so that the numbers behind it are aligned
_BODY = struct.Struct(f"<{SCALARS}d{SIZE - SCALARS}H")
_SCALARS = struct.Struct(f"<{SCALARS}d")
SCALARS_OFFSET = _HEADER.size
GRAINS_OFFSET = SCALARS_OFFSET + 8 * SCALARS
PACKED_BYTES = _HEADER.size + _BODY.size


def pack_state(vector: Sequence[float]) -> bytes:
    return add_header(_BODY.pack(*vector))


def add_header(body: bytes | bytearray) -> bytes:
    """A packed state from its packed numbers."""
    return _HEADER.pack(_VERSION, crc32(body)) + body


def is_state(packed: bytes | None) -> bool:
    """Whether these bytes are a valid state."""
    if packed is None or len(packed) != PACKED_BYTES:
        return False
    version, checksum = _HEADER.unpack_from(packed)
    return bool(version == _VERSION and crc32(memoryview(packed)[_HEADER.size :]) == checksum)


def unpack_state(packed: bytes | None) -> list[float] | None:
    """The state's vector, or None if it is missing or invalid."""
    if packed is None or not is_state(packed):
        return None
    return list(_BODY.unpack_from(packed, _HEADER.size))


def unpack_scalars(packed: bytes | None) -> list[float] | None:
    """The state's scalars, or None if it is missing or invalid."""
    if packed is None or not is_state(packed):
        return None
    return list(_SCALARS.unpack_from(packed, _HEADER.size))

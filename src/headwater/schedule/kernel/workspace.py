"""The vectors that a digest or a plan works in: made once, used for every source."""

from collections.abc import Callable

from ..layout import BIN_SECONDS, DAY_BINS, HOUR_BINS, LEVELS, RULES, SHAPES, Vector

MAX_CELLS = 48
MAX_CELL_SECONDS = 14400.0
# The running sums of the day reach back over midnight, and forward past the longest cell.
MARGIN = 16
REACH = DAY_BINS + 2 * MARGIN + int(MAX_CELL_SECONDS / BIN_SECONDS) + 1
EDGES = HOUR_BINS + 1  # in `hour`: where the distances to the end of a rush begin

# What a plan says.
OUT_AFTER = 0  # seconds until the visit
OUT_RATE = 1  # items per second now, apart from the profile
OUT_LONG_RATE = 2  # items per second in the long run
OUT_PROFILE = 3  # value of the profile at the visit; the mean is 1
OUT_BOUND = 4  # 1: the window of the source decided
OUT_FLAT = 5  # how far the flat profile is trusted
OUT_REGULAR = 6  # how far regular gaps are trusted
OUT_SILENCE = 7  # seconds since the newest event; 0: none is known
OUT_SIZE = 8

# Coefficients of the mixed profile, see `forecast.mix_shapes`.
MIX_LEVEL = 0
MIX_BROAD = 1
MIX_MEDIUM = 2
MIX_SHARP = 3
MIX_HOUR_LEVEL = 4
MIX_HOUR_BROAD = 5
MIX_HOUR_MEDIUM = 6
MIX_BY_MINUTE = 7
MIX_SIZE = 8


class Workspace:
    """`make_floats` and `make_ints` return a vector of that many zeros."""

    def __init__(self, make_floats: Callable[[int], Vector], make_ints: Callable[[int], Vector]) -> None:
        self.weights = make_floats(SHAPES + 2)  # of the shapes, the flat one first; last that of the week
        self.rates = make_floats(LEVELS)
        self.sums = make_floats(REACH + 1)  # running sums of running sums of the day
        self.hour = make_floats(EDGES + HOUR_BINS)
        self.mix = make_floats(MIX_SIZE)
        self.times = make_floats(MAX_CELLS + 1)  # of the cells' ends …
        self.counts = make_floats(MAX_CELLS + 1)  # … items up to there …
        self.moments = make_floats(MAX_CELLS + 1)  # … and their sum of times
        self.costs = make_floats(MAX_CELLS + 1)
        self.hull = make_ints(MAX_CELLS + 1)
        self.clocks = make_floats(3 * RULES)  # since, until and shift of each summer-time rule
        self.out = make_floats(OUT_SIZE)

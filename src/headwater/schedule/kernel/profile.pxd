cimport cython
from libc cimport math
from . cimport summer
from .workspace cimport Workspace

include "layout.pxi"

cdef double _DAY, _WEEK, _MONDAY, MEMORY, DAYS_TO_LEARN, WEEKS_TO_LEARN, SCORE_MEMORY
cdef int BROAD, MEDIUM, SHARP, SPREAD_POINTS
cdef double BROAD_WIDTH, MEDIUM_WIDTH, SHARP_WIDTH, BROAD_TRUST, MEDIUM_TRUST, SHARP_TRUST
cdef double HOUR_PRIOR, WEEKEND_TRUST, WEEKDAY_TRUST, MAX_WEIGHT, MAX_COUNT, WIDEST_SPREAD
cdef double CHANGE_MEMORY, RULE_LEAD

cdef void weigh_shapes(double[::1] state, double[::1] weights) except *
cdef double logistic(double score) except? -1
cpdef void sum_day(double[::1] state, double[::1] sums, int margin, int reach) except *
cdef double count_day(double[::1] state, int centre, int half) except? -1
cdef double shrink(double count, double expected, double trust, double coarser) except? -1
cdef int find_bin(double at) except? -1
cdef double find_hour_density(double[::1] state, int minute, double prior, double share) except? -1
cdef double find_minute_share(double[::1] state) except? -1
@cython.locals(weekday=int)
cdef double find_week_density(double[::1] state, double local, double scale) except? -1
cdef double find_event_weight(double[::1] state, double at) except? -1
cdef double find_local(double[::1] state, Workspace work, double at) except? -1
@cython.locals(centre=int)
cdef double find_density(double[::1] state, double[::1] weights, double local, double scale) except? -1
@cython.locals(centre=int, minute=int)
cdef double learn(double[::1] state, Workspace work, double at) except? -1
cdef void score_shapes(double[::1] state, double at, double broad, double medium, double sharp, double hour) except *
cdef double scale_weight(double[::1] state, double at) except? -1
@cython.locals(in_day=int, in_hour=int, in_week=int)
cdef void add_grains(double[::1] state, double at, double local, int grains) except *
@cython.locals(grains=int)
cdef void rescale(double[::1] state, double factor) except *
@cython.locals(points=int, centre=int, grains=int, broads=double, mediums=double, sharps=double, total=double,
               shares=double, moment=double)
cdef double spread(double[::1] state, Workspace work, double since, double until) except? -1
cdef void forget(double[::1] state) except *
cdef void shift(double[::1] state, double seconds) except *
@cython.locals(done=int, start=int, index=int)
cdef void turn(double[::1] state, int first, int count, int steps) except *
@cython.locals(current=int, best=int)
cdef void choose_rule(double[::1] state, Workspace work, double at, double scale) except *
cdef double find_change(double[::1] state, Workspace work, int rule, double at) except? -1
cdef double find_old_shift(Workspace work, int rule, double at) except? -1

from libc cimport math

include "layout.pxi"

cdef double MEMORY, SCORE_MEMORY, HANDICAP, FIRST_LEAD, LOWEST_SCORE, HIGHEST_SCORE, WIDEST, NARROWEST_SECONDS, OUTLIERS
cdef double MOST_SKIPPED, _ROOT_2PI, _ROOT_2

cdef double find_spread(double[::1] state) except? -1
cdef void learn(double[::1] state, double gap, double density) except *
cdef void restart(double[::1] state, double gap) except *
cdef void forget(double[::1] state) except *
cdef double weigh(double[::1] state, double now, double rate) except? -1
cdef double sum_events(double[::1] state, double now, double at, double spread) except? -1

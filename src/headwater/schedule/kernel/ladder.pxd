from libc cimport math

include "layout.pxi"

cdef double[4] MEMORIES, SHRINKAGE
cdef double PRIOR_RATE, UNKNOWN_RATE, BATCH_MEMORY, KNOWN_SECONDS, KNOWN_EVENTS

cdef void find_rates(double[::1] state, double[::1] rates) except *
cpdef double find_usual_rate(double[::1] state) except? -1
cdef void fade_counts(double[::1] state, double seconds) except *
cdef void add_exposure(double[::1] state, double seconds, double profile) except *
cdef void count_event(double[::1] state, double age) except *
cdef void fade_batches(double[::1] state) except *

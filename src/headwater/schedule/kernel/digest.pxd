cimport cython
from libc cimport math
from . cimport dates, ladder, profile, rhythm
from .workspace cimport Workspace

include "layout.pxi"

cdef double BATCH_SECONDS, EXPOSURE_STEPS, OLDEST_HISTORY, NEGLIGIBLE, BURST_SHARE, BURST_SECONDS, SMALLEST_WINDOW

cpdef void begin(double[::1] state, double at) except *
@cython.locals(count=int)
cpdef void digest_visit(double[::1] state, Workspace work, double at, double[::1] times, int found, bint first,
                       bint overflow) except *
@cython.locals(vague=int)
cdef void digest_items(double[::1] state, Workspace work, double at, double[::1] times, bint first, double since,
                      double last_at) except *
@cython.locals(steps=int)
cdef void expose(double[::1] state, Workspace work, double since, double until) except *

cimport cython
from libc cimport math
from . cimport forecast, ladder, profile, rhythm, summer
from .workspace cimport Workspace

include "layout.pxi"
include "workspace.pxi"

cdef double _DAY, _NEVER, MIN_WAIT_SECONDS, FAR_SECONDS, PUNCTUAL_SHARE, WINDOW_SHARE, JITTER, DORMANT_SHARE
cdef int MAX_RUSHES

@cython.locals(cells=int, best=int, full=int, is_wide=bint)
cpdef void plan_visit(double[::1] state, Workspace work, double now, double price, double shortest) except *
cpdef void plan_from_scratch(double[::1] state, Workspace work, double now, double price, double shortest) except *
@cython.locals(head=int, tail=int, best=int, index=int, joins=int, rival=int, one=int, two=int)
cdef int choose_cell(Workspace work, int cells, double price, double typical, double shortest,
                     double waiting) except -1
@cython.locals(index=int, first=int)
cdef double wait_for_rush(double[::1] state, Workspace work, double now, double typical, int best) except? -1
cdef double wait_for_event(double[::1] state, double now, double miss, double chosen) except? -1
cdef void keep_in_window(double[::1] state, double[::1] out, double rate) except *
cdef double spread_wait(double wait, double flat, double chance) except? -1
cdef double find_longest(double longest, double dormant, double silence) except? -1

cimport cython
from . cimport digest, plan
from .workspace cimport Workspace

include "workspace.pxi"

cdef double _DAY, _LARGEST
cdef int LAST_AT
cdef int WINDOW, SHORTEST, LONGEST, DORMANT, SEED, FIRST, POSITION, NEXT_AT, VISITS, USELESS, MISSED

@cython.locals(old=int, first=int, window=int, new=int)
cdef int see_items(double[::1] cursor, double[::1] times, double[::1] delays, double at) except -1
cdef void read_dates(double[::1] stated, int first, int stop, double at) except *
@cython.locals(old=int, first=bint, seen=int, position=int, shown=int)
cpdef void advance(double[::1] state, Workspace work, double[::1] cursor, double[::1] times, double[::1] stated,
                  double[::1] delays, double until, double price) except *

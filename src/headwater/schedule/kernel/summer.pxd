cimport cython
from libc cimport math
from .workspace cimport Workspace

cdef int NO_RULE, EUROPE, NORTH_AMERICA, AUSTRALIA
cdef int _MAR_14, _MAR_31, _APR_7, _OCT_7, _OCT_31, _NOV_7
cdef double _DAY, _HOUR

cdef double find_shift(Workspace work, int rule, double at) except? -1
cpdef int guess_rule(Workspace work, double offset, double at) except -1
@cython.locals(year=int, summer=bint)
cdef void find_span(double[::1] clocks, int rule, double at) except *
@cython.locals(day=int, before=int, days=int)
cdef double find_change(int rule, int year, int second) except? -1

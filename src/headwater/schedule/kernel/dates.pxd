cimport cython
from libc cimport math
from . cimport profile

include "layout.pxi"

cdef double SLACK, ANY_OFFSET, _MEMORY, _OUTSIDE_MEMORY, _MOST_MISSES
cdef int _SAMPLE

@cython.locals(missing=int)
cdef void judge_visit(double[::1] state, double[::1] times, double since, double at) except *
cdef void judge(double[::1] state, double low, double high) except *
cdef void settle(double[::1] state) except *
cdef bint are_believed(double[::1] state) except? -1

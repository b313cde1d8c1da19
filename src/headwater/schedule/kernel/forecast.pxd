cimport cython
from libc cimport math
from . cimport ladder, profile, rhythm, summer
from .workspace cimport Workspace

include "layout.pxi"
include "workspace.pxi"

cdef double _DAY, CELLS_PER_VISIT, HORIZON_VISITS, MIN_CELL_SECONDS, CLOSE_SECONDS, NEGLIGIBLE
cdef int _HIGH_BROAD, _LOW_BROAD, _HIGH_MEDIUM, _LOW_MEDIUM, _HIGH_SHARP, _LOW_SHARP

cdef void mix_shapes(double[::1] state, Workspace work, double scale) except *
cdef void read_hour(double[::1] state, double[::1] hour, double prior) except *
@cython.locals(minute=int)
cdef double sum_hour(double[::1] hour, double at) except? -1
@cython.locals(minute=int)
cdef double find_rush_end(double[::1] hour, double at) except? -1
cdef double mean_of_hour_shapes(Workspace work, int first, int stop) except? -1
@cython.locals(flat=bint, minutes=bint, close=bint, rule=int, cells=int, edge=int, first=int, stop=int,
               spread=double, due=double, begun=double)
cdef int fill_cells(double[::1] state, Workspace work, double now, double price, double typical,
                    double regular) except -1
